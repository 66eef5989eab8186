--[[
  The queue of those that wait for slots: first come, first served; src/core/buckets/concurrency/queue.ts is the model and says why.
]]
local Leases = require 'buckets/concurrency/leases'
local Places = require 'buckets/concurrency/places'
local C = require 'constants'
local Call = require 'call'
local asText = require('numbers').asText
local Queue = {}
local max = math.max

-- Calls `visit` with each live place from the head of the queue until it returns true. Lapsed ones are removed on saving.
function Queue.each(bucket, visit)
  local from, holders = 0, nil
  repeat
    holders = redis.call('ZRANGE', bucket.queue, from, from + 15)
    for index = 1, #holders do
      local cost, untilUs, wokenUs, waiter = Places.of(bucket, holders[index])
      if not cost or untilUs <= bucket.atUs then
        bucket.gone[#bucket.gone + 1] = holders[index]
      elseif visit(holders[index], cost, untilUs, wokenUs, waiter) then
        return
      end
    end
    from = from + 16
  until #holders < 16
end

-- What a place in the queue still needs, besides what its holder has; and the same, or 0 if it is passed over. `late` are
-- the processes that have not come when one of their places was woken.
function Queue.needOf(bucket, late, holder, cost, wokenUs, waiter)
  local own = bucket.byHolder[holder]
  local need = max(0, Leases.askedOf(bucket, cost) - (own and own.cost or 0))
  local isLate = wokenUs > 0 and bucket.atUs >= wokenUs + C.WOKEN_US
  if isLate and waiter ~= '' then
    late[waiter] = true
  end
  return need, (isLate or late[waiter]) and 0 or need
end

-- A place that had lapsed goes to the end.
function Queue.join(bucket, cost, holder)
  local isQueued = redis.call('ZSCORE', bucket.queue, holder)
  local _, untilUs = Places.of(bucket, holder)
  if not isQueued or (untilUs and untilUs <= bucket.atUs) then
    bucket.places = bucket.places + 1
    redis.call('ZADD', bucket.queue, asText(bucket.places), holder)
  end
  Leases.takeOver(bucket)
  Places.write(bucket, holder, cost, bucket.atUs + C.WAITING_US, 0, Call.instance)
  bucket.exists, bucket.changed = true, true
end

-- Tells those at the head of the queue for whom there is room now, and who do not know it yet.
function Queue.wake(bucket)
  local taken, late, unheard, slots = bucket.held, {}, {}, Leases.slotsNow(bucket)
  Queue.each(bucket, function(holder, cost, untilUs, wokenUs, waiter)
    local need, counted = Queue.needOf(bucket, late, holder, cost, wokenUs, waiter)
    if taken + need <= slots and wokenUs == 0 then
      -- Nobody there to hear it: its process is gone, or asks by itself and gets another place then. (A user who may not
      -- publish must not end the script half-way.)
      local told = redis.pcall('PUBLISH', Call.wakePrefix .. waiter, holder)
      if type(told) == 'number' and (told > 0 or not Call.countsListeners) then
        Leases.takeOver(bucket)
        Places.write(bucket, holder, cost, untilUs, bucket.atUs, waiter)
      else
        counted = 0
        unheard[#unheard + 1] = holder
      end
    end
    taken = taken + counted
    return taken > slots
  end)
  for index = 1, #unheard do
    Places.remove(bucket, unheard[index])
  end
end

return Queue
