--[[
  release, renew, leave: slots are given back or kept, and places in their queues given up; src/core/decide/give-back.ts is the
  model. Reads `input`, `words`.
]]
--- @include "reply"
--- @include "decide/buckets"
--- @include "buckets/concurrency/queue-places"
--- @include "buckets/concurrency/queue"
--- @include "buckets/concurrency/leases"
local function release(position)
  local bucket = buckets[input[position]]
  put(releaseSlot(bucket, words[input[position + 1]], input[position + 2]) and 1 or 0)
  return position + 3
end

local function renew(position)
  local bucket = buckets[input[position]]
  put(renewSlot(bucket, words[input[position + 1]], input[position + 2], input[position + 3]) and 1 or 0)
  return position + 4
end

local function leave(position)
  local gone, count = words[input[position]], input[position + 1]
  for index = position + 2, position + 1 + count do
    local bucket = buckets[input[index]]
    leaveQueue(bucket, gone)
    bucket.changed = bucket.changed or bucket.exists
    wakeWaiters(bucket)
  end
  put(1)
  return position + 2 + count
end
