--[[
  A place in the queue of those that wait for slots, as it is kept; src/core/buckets/concurrency/queue.ts is the model.

  Queue: sorted set, score the place, member the holder.
  Waiting: hash, holder to "cost until woken waiter" (µs; woken 0: not yet); the waiter is the process that waits, and is
  told on its channel.
]]
local Numbers = require 'numbers'
local Places = {}
local asText, movedBy = Numbers.asText, Numbers.movedBy

-- Returns cost, untilUs, wokenUs, waiter; nothing if the holder has none.
local function placeOf(bucket, holder)
  local text = redis.call('HGET', bucket.waiting, holder)
  if text then
    local cost, untilUs, wokenUs, waiter = string.match(text, '^(%d+) (%d+) (%d+) (.*)$')
    local stepUs = bucket.stepUs or 0
    return tonumber(cost), movedBy(tonumber(untilUs), stepUs), movedBy(tonumber(wokenUs), stepUs), waiter
  end
end
Places.of = placeOf

function Places.isLive(bucket, holder)
  local _, untilUs = placeOf(bucket, holder)
  return untilUs and untilUs > bucket.atUs
end

function Places.write(bucket, holder, cost, untilUs, wokenUs, waiter)
  local text = asText(cost) .. ' ' .. asText(untilUs) .. ' ' .. asText(wokenUs) .. ' ' .. waiter
  redis.call('HSET', bucket.waiting, holder, text)
end

-- Returns whether it was there.
function Places.remove(bucket, holder)
  if redis.call('ZREM', bucket.queue, holder) == 1 then
    redis.call('HDEL', bucket.waiting, holder)
    bucket.changed = true
    return true
  end
  return false
end

return Places
