--[[
  Slots are leased, renewed and given back; src/core/buckets/concurrency/leases.ts is the model and says why.

  Leases: sorted set, score until (µs), member "fence cost holder".

  Loading writes nothing, and so the leases and places that are kept may differ until something changes: `stepUs` is how far a
  clock was put back since, `lapsed` and `gone` are leases and places that are over.
]]
local Places = require 'buckets/concurrency/places'
local Pause = require 'buckets/pause'
local Numbers = require 'numbers'
local Leases = {}
local asText, movedBy = Numbers.asText, Numbers.movedBy
local min, max, floor = math.min, math.max, math.floor

local function memberOf(fence, cost, holder)
  return asText(fence) .. ' ' .. asText(cost) .. ' ' .. holder
end

local function parse(member)
  local fence, cost, holder = string.match(member, '^(%d+) (%d+) (.*)$')
  return tonumber(fence), tonumber(cost), holder
end

-- The slots there are now.
function Leases.slotsNow(bucket)
  return Pause.opened(bucket.allSlots, bucket.laterPause, bucket.atUs)
end

-- An adaptive limit may have fallen below a cost: that passes alone.
function Leases.askedOf(bucket, cost)
  return bucket.adaptive and min(cost, bucket.allSlots) or cost
end

-- A stretch in which use is looked at begins with what is held then.
function Leases.followAdaptive(bucket)
  require('buckets/adaptive').hold(bucket.adaptive, bucket.held)
  bucket.allSlots = max(1, floor(bucket.adaptive.value / 1000))
end

-- Returns how many slots were held until now, with the leases that have lapsed.
function Leases.load(bucket)
  local heldBefore, leases = 0, redis.call('ZRANGE', bucket.leases, 0, -1, 'WITHSCORES')
  for index = 1, #leases, 2 do
    local fence, cost, holder = parse(leases[index])
    local untilUs = movedBy(tonumber(leases[index + 1]), bucket.stepUs or 0)
    heldBefore = heldBefore + cost
    if untilUs > bucket.atUs then
      bucket.held = bucket.held + cost
      bucket.byHolder[holder] = { fence = fence, cost = cost, untilUs = untilUs, member = leases[index] }
    else
      bucket.lapsed[#bucket.lapsed + 1] = leases[index]
    end
  end
  return heldBefore
end

-- Writes what loading has only reckoned with: a clock that was put right.
function Leases.takeOver(bucket)
  local stepUs = bucket.stepUs
  if not stepUs then
    return
  end
  local leases = redis.call('ZRANGE', bucket.leases, 0, -1, 'WITHSCORES')
  for index = 1, #leases, 2 do
    redis.call('ZADD', bucket.leases, asText(movedBy(tonumber(leases[index + 1]), stepUs)), leases[index])
  end
  local holders = redis.call('HKEYS', bucket.waiting)
  for index = 1, #holders do
    Places.write(bucket, holders[index], Places.of(bucket, holders[index]))
  end
  bucket.stepUs = nil
end

local function write(bucket, holder, lease)
  lease.member = lease.member or memberOf(lease.fence, lease.cost, holder)
  lease.untilUs = bucket.atUs + bucket.limit.leaseUs
  redis.call('ZADD', bucket.leases, asText(lease.untilUs), lease.member)
  bucket.exists, bucket.changed = true, true
end

local function drop(bucket, holder, lease)
  redis.call('ZREM', bucket.leases, lease.member)
  bucket.byHolder[holder] = nil
  bucket.held = bucket.held - lease.cost
end

local function add(bucket, holder, lease)
  bucket.byHolder[holder] = lease
  bucket.held = bucket.held + lease.cost
end

-- Returns the fencing number.
function Leases.lease(bucket, cost, holder)
  Leases.takeOver(bucket)
  local own = bucket.byHolder[holder]
  if own then
    drop(bucket, holder, own)
  end
  bucket.fence = max(bucket.fence + 1, bucket.atUs)
  local lease = { fence = bucket.fence, cost = cost }
  add(bucket, holder, lease)
  write(bucket, holder, lease)
  return bucket.fence
end

local function heldLease(bucket, holder, fence)
  local own = bucket.byHolder[holder]
  return own and own.fence == fence and own or nil
end

-- Returns whether it was still held.
function Leases.release(bucket, holder, fence)
  local own = heldLease(bucket, holder, fence)
  if own then
    drop(bucket, holder, own)
  end
  bucket.changed = bucket.changed or bucket.exists
  return own ~= nil
end

-- Returns whether it was still held. `isLost`: the store has lost its leases, and this one may have been among them: it is
-- taken in again.
function Leases.renew(bucket, holder, fence, cost, isLost)
  local own = heldLease(bucket, holder, fence)
  if not own and isLost and not bucket.byHolder[holder] then
    own = { fence = fence, cost = cost }
    add(bucket, holder, own)
    bucket.fence = max(bucket.fence, fence)
  end
  if own then
    Leases.takeOver(bucket)
    write(bucket, holder, own)
  end
  return own ~= nil
end

function Leases.removeLapsed(bucket)
  for index = 1, #bucket.lapsed do
    local member = bucket.lapsed[index]
    local _, _, holder = parse(member)
    local own = bucket.byHolder[holder]
    -- One that had lapsed may have been taken in again.
    if not own or own.member ~= member then
      redis.call('ZREM', bucket.leases, member)
    end
  end
end

return Leases
