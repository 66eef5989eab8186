--[[
  A place in the queue of those that wait for slots, as it is kept; src/core/buckets/concurrency/leases.ts is the model.

  Queue: sorted set, score the place, member the holder.
  Waiting: hash, holder to "cost until woken waiter" (µs; woken 0: not yet); the waiter is the process that waits, and is
  told on its channel.
]]
--- @include "numbers"
--- @include "buckets/rate/gcra"
local WAITING_US = 3000000

local function placeOf(bucket, holder)
  local text = redis.call('HGET', bucket.waiting, holder)
  if not text then
    return nil
  end
  local cost, untilUs, woken, waiter = string.match(text, '^(%d+) (%d+) (%d+) (.*)$')
  local step = bucket.step or 0
  return tonumber(cost), movedBy(tonumber(untilUs), step), movedBy(tonumber(woken), step), waiter
end

local function hasPlace(bucket, holder)
  local _, untilUs = placeOf(bucket, holder)
  return untilUs and untilUs > bucket.at
end

local function writePlace(bucket, holder, cost, untilUs, woken, waiter)
  local text = whole(cost) .. ' ' .. whole(untilUs) .. ' ' .. whole(woken) .. ' ' .. waiter
  redis.call('HSET', bucket.waiting, holder, text)
end

local function leaveQueue(bucket, holder)
  if redis.call('ZREM', bucket.queue, holder) == 1 then
    redis.call('HDEL', bucket.waiting, holder)
    bucket.changed = true
    return true
  end
  return false
end
