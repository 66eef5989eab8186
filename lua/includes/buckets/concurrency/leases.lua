--[[
  Slots are leased, renewed and given back; src/core/buckets/concurrency/leases.ts is the model and says why. Reads `now`, `coldAt`.
]]
--- @include "numbers"
--- @include "buckets/rate/gcra"
--- @include "buckets/ramp"
--- @include "buckets/rate/debt"
--- @include "buckets/adaptive"
--- @include "buckets/concurrency/queue-places"
--- @include "buckets/concurrency/slots"
--- @include "buckets/concurrency/queue"
local ASK_AGAIN_US = 1000000

-- 0: there is room for the holder, and nobody before it in the queue. Else when it is worth asking again.
local function slotWait(bucket, cost, holder)
  local own = bucket.byHolder[holder]
  -- Whoever held slots when the store lost them has come to renew them by then.
  local cold = (own or coldAt == 0) and 0 or max(0, coldAt + bucket.limit.lease - now)
  local taken, asked = bucket.held - (own and own.cost or 0), askedOf(bucket, cost)
  if not own and taken + asked <= bucket.allSlots then
    local gone = {}
    eachPlace(bucket, function(other, theirs, _, woken, waiter)
      if other == holder then
        return true
      end
      local _, counted = needOf(bucket, gone, other, theirs, woken, waiter)
      taken = taken + counted
      return taken + asked > bucket.allSlots
    end)
  end
  local needed, empty = taken + asked, emptyOf(bucket)
  -- A ramp keeps nobody from what it holds.
  if needed <= (own and cost <= own.cost and bucket.allSlots or slotsOf(bucket)) then
    return cold
  end
  local first = ASK_AGAIN_US
  if needed <= bucket.allSlots and isRamping(bucket.at, rampEndOf(bucket, empty)) then
    first = min(first, whenSlots(needed, bucket.allSlots, empty) - bucket.at)
  end
  for _, held in pairs(bucket.byHolder) do
    first = min(first, held.untilUs - bucket.at)
  end
  return max(cold, first)
end

local function lease(bucket, cost, holder)
  takeOverSlots(bucket)
  local own = bucket.byHolder[holder]
  if own then
    redis.call('ZREM', bucket.leases, own.member)
    bucket.held = bucket.held - own.cost
  end
  bucket.fence = max(bucket.fence + 1, bucket.at)
  local untilUs, member = bucket.at + bucket.limit.lease, leaseMember(bucket.fence, cost, holder)
  redis.call('ZADD', bucket.leases, whole(untilUs), member)
  bucket.byHolder[holder] = { fence = bucket.fence, cost = cost, untilUs = untilUs, member = member }
  bucket.held = bucket.held + cost
  leaveQueue(bucket, holder)
  bucket.granted = bucket.granted + cost
  bucket.exists = true
  bucket.changed = true
  if bucket.adaptive then
    adaptiveHold(bucket.adaptive, bucket.held)
  end
  return bucket.fence
end

local function heldLease(bucket, holder, fence)
  local own = bucket.byHolder[holder]
  return own and own.fence == fence and own or nil
end

local function releaseSlot(bucket, holder, fence)
  local own = heldLease(bucket, holder, fence)
  if own then
    redis.call('ZREM', bucket.leases, own.member)
    bucket.byHolder[holder] = nil
    bucket.held = bucket.held - own.cost
  end
  bucket.changed = bucket.changed or bucket.exists
  wakeWaiters(bucket)
  return own ~= nil
end

local function renewSlot(bucket, holder, fence, cost)
  local own = heldLease(bucket, holder, fence)
  local isLost = coldAt > 0 and fence < coldAt and now < coldAt + bucket.limit.lease
  if not own and isLost and not bucket.byHolder[holder] then
    -- The store has lost its leases, and this one may have been among them: it is taken in again.
    own = { fence = fence, cost = cost, member = leaseMember(fence, cost, holder) }
    bucket.byHolder[holder] = own
    bucket.held = bucket.held + cost
    bucket.fence = max(bucket.fence, fence)
    bucket.exists = true
  end
  if own then
    takeOverSlots(bucket)
    own.untilUs = bucket.at + bucket.limit.lease
    redis.call('ZADD', bucket.leases, whole(own.untilUs), own.member)
    bucket.changed = true
  end
  return own ~= nil
end
