--[[
  The queue of those that wait for slots: first come, first served; src/core/buckets/concurrency/leases.ts is the model and says why. Reads
  `instance`, `wakePrefix`, `countsListeners`.
]]
--- @include "numbers"
--- @include "buckets/rate/gcra"
--- @include "buckets/concurrency/queue-places"
--- @include "buckets/concurrency/slots"
local WOKEN_US = 50000

-- Calls `visit` with each live place from the head of the queue until it returns true. Lapsed ones are removed on saving.
local function eachPlace(bucket, visit)
  local from = 0
  while true do
    local holders = redis.call('ZRANGE', bucket.queue, from, from + 15)
    if #holders == 0 then
      return
    end
    for index = 1, #holders do
      local holder = holders[index]
      local cost, untilUs, woken, waiter = placeOf(bucket, holder)
      from = from + 1
      if not cost or untilUs <= bucket.at then
        bucket.gone[#bucket.gone + 1] = holder
      elseif visit(holder, cost, untilUs, woken, waiter) then
        return
      end
    end
  end
end

-- What a place in the queue still needs, besides what its holder has; and the same, or 0 if it is passed over. `gone` are
-- the processes that have not come when one of their places was woken.
local function needOf(bucket, gone, holder, cost, woken, waiter)
  local own = bucket.byHolder[holder]
  local need = max(0, askedOf(bucket, cost) - (own and own.cost or 0))
  local late = woken > 0 and bucket.at >= woken + WOKEN_US
  if late and waiter ~= '' then
    gone[waiter] = true
  end
  return need, (late or gone[waiter]) and 0 or need
end

local function setPlace(bucket, holder, cost, untilUs, woken, waiter)
  takeOverSlots(bucket)
  writePlace(bucket, holder, cost, untilUs, woken, waiter)
end

local function queueUp(bucket, cost, holder)
  if not redis.call('ZSCORE', bucket.queue, holder) then
    bucket.places = bucket.places + 1
    redis.call('ZADD', bucket.queue, whole(bucket.places), holder)
  else
    local _, untilUs = placeOf(bucket, holder)
    if untilUs and untilUs <= bucket.at then
      -- Its place had lapsed: it goes to the end.
      bucket.places = bucket.places + 1
      redis.call('ZADD', bucket.queue, whole(bucket.places), holder)
    end
  end
  setPlace(bucket, holder, cost, bucket.at + WAITING_US, 0, instance)
  bucket.exists = true
  bucket.changed = true
end

-- Tells those at the head of the queue for whom there is room now, and who do not know it yet.
local function wakeWaiters(bucket)
  local taken, gone, unheard = bucket.held, {}, {}
  eachPlace(bucket, function(holder, cost, untilUs, woken, waiter)
    local need, counted = needOf(bucket, gone, holder, cost, woken, waiter)
    if taken + need <= slotsOf(bucket) and woken == 0 then
      -- Nobody there to hear it: its process is gone, or asks by itself and gets another place then. (A user who may not
      -- publish must not end the script half-way.)
      local told = redis.pcall('PUBLISH', wakePrefix .. waiter, holder)
      local heard = type(told) == 'number' and (told > 0 or not countsListeners)
      if heard then
        setPlace(bucket, holder, cost, untilUs, bucket.at, waiter)
      else
        counted = 0
        unheard[#unheard + 1] = holder
      end
    end
    taken = taken + counted
    return taken > slotsOf(bucket)
  end)
  for index = 1, #unheard do
    leaveQueue(bucket, unheard[index])
  end
end
