--[[
  Buckets of concurrency limits: read, brought to now, written; src/core/buckets/concurrency/leases.ts is the model. Reads `now`.

  Hash: at, granted, refused, closed, fence, places (number of the last place given), adaptive.
  Leases: sorted set, score until (µs), member "fence cost holder". Queue and waiting: queue-places.lua.

  Loading writes nothing, and so the leases and places that are kept may differ until something changes: `step` is how far a
  clock was put back since (µs), `lapsed` and `gone` are leases and places that are over.
]]
--- @include "numbers"
--- @include "clock"
--- @include "buckets/rate/gcra"
--- @include "buckets/line"
--- @include "buckets/ramp"
--- @include "buckets/rate/debt"
--- @include "fields"
--- @include "buckets/rate/drain"
--- @include "buckets/adaptive"
--- @include "buckets/adaptive-text"
--- @include "buckets/concurrency/queue-places"

local function leaseMember(fence, cost, holder)
  return whole(fence) .. ' ' .. whole(cost) .. ' ' .. holder
end

local function parseLease(member)
  local fence, cost, holder = string.match(member, '^(%d+) (%d+) (.*)$')
  return tonumber(fence), tonumber(cost), holder
end

-- The slots there are now.
local function slotsOf(bucket)
  local empty = emptyOf(bucket)
  if bucket.adaptive and bucket.at >= empty then
    return bucket.allSlots
  end
  return slotsInRamp(bucket.allSlots, bucket.at, empty)
end

-- An adaptive limit may have fallen below a cost: that passes alone.
local function askedOf(bucket, cost)
  return bucket.adaptive and min(cost, bucket.allSlots) or cost
end

-- Returns how many slots were held until now, with the leases that have lapsed.
local function loadLeases(bucket)
  bucket.held, bucket.byHolder, bucket.lapsed, bucket.gone = 0, {}, {}, {}
  local heldBefore, leases = 0, redis.call('ZRANGE', bucket.leases, 0, -1, 'WITHSCORES')
  for index = 1, #leases, 2 do
    local fence, cost, holder = parseLease(leases[index])
    local untilUs = movedBy(tonumber(leases[index + 1]), bucket.step or 0)
    heldBefore = heldBefore + cost
    if untilUs > bucket.at then
      bucket.held = bucket.held + cost
      bucket.byHolder[holder] = { fence = fence, cost = cost, untilUs = untilUs, member = leases[index] }
    else
      bucket.lapsed[#bucket.lapsed + 1] = leases[index]
    end
  end
  return heldBefore
end

-- A stretch in which use is looked at begins with what is held then.
local function followAdaptive(bucket)
  adaptiveHold(bucket.adaptive, bucket.held)
  bucket.allSlots = max(1, floor(bucket.adaptive.value / 1000))
end

local function loadSlots(bucket, limit)
  local stored = redis.call(
    'HMGET', bucket.key, 'at', 'granted', 'refused', 'closed', 'fence', 'places', 'adaptive'
  )
  bucket.exists = stored[1] ~= false
  local at = tonumber(stored[1]) or now
  bucket.granted, bucket.refused = tonumber(stored[2]) or 0, tonumber(stored[3]) or 0
  bucket.closed, bucket.fence = tonumber(stored[4]) or 0, tonumber(stored[5]) or 0
  bucket.places = tonumber(stored[6]) or 0
  bucket.line, bucket.open = 0, 0
  if at - now > MAX_CLOCK_STEP_US then
    bucket.step = at - now
    bucket.closed = movedBy(bucket.closed, bucket.step)
    bucket.outdated = bucket.exists
    at = now
  end
  bucket.at = max(now, at)
  local heldBefore = loadLeases(bucket)
  bucket.allSlots = limit.max
  bucket.hadAdaptive = stored[7] ~= false
  if limit.adaptive then
    bucket.adaptive = stored[7] and readAdaptive(stored[7]) or nil
    if bucket.adaptive then
      adaptiveHold(bucket.adaptive, heldBefore)
      adaptiveRise(bucket.adaptive, limit.adaptive, 0)
    else
      bucket.adaptive = adaptiveBegun(limit.adaptive, limit.max * 1000)
    end
    followAdaptive(bucket)
  end
end

-- Writes what loading has only reckoned with: a clock that was put right.
local function takeOverSlots(bucket)
  local step = bucket.step
  if not step then
    return
  end
  local leases = redis.call('ZRANGE', bucket.leases, 0, -1, 'WITHSCORES')
  for index = 1, #leases, 2 do
    redis.call('ZADD', bucket.leases, whole(movedBy(tonumber(leases[index + 1]), step)), leases[index])
  end
  local places = redis.call('HGETALL', bucket.waiting)
  for index = 1, #places, 2 do
    local cost, untilUs, woken, waiter = placeOf(bucket, places[index])
    writePlace(bucket, places[index], cost, untilUs, woken, waiter)
  end
  bucket.step = nil
end

local function saveSlots(bucket)
  local key = bucket.key
  if not bucket.changed then
    return saveRefusals(bucket)
  end
  redis.call(
    'HSET', key, 'at', whole(bucket.at), 'granted', whole(bucket.granted), 'refused', whole(bucket.refused), 'fence',
    whole(bucket.fence), 'places', whole(bucket.places)
  )
  setOrDelete(key, 'closed', bucket.closed, false)
  takeOverSlots(bucket)
  for index = 1, #bucket.gone do
    local _, untilUs = placeOf(bucket, bucket.gone[index])
    if not untilUs or untilUs <= bucket.at then
      leaveQueue(bucket, bucket.gone[index])
    end
  end
  for index = 1, #bucket.lapsed do
    local _, _, holder = parseLease(bucket.lapsed[index])
    local own = bucket.byHolder[holder]
    -- One that had lapsed may have been taken in again.
    if not own or own.member ~= bucket.lapsed[index] then
      redis.call('ZREM', bucket.leases, bucket.lapsed[index])
    end
  end
  -- Whoever waits has a place for this long at the most.
  local rest = max(bucket.at + WAITING_US, bucket.closed)
  for _, held in pairs(bucket.byHolder) do
    rest = max(rest, held.untilUs)
  end
  if bucket.adaptive then
    redis.call('HSET', key, 'adaptive', writeAdaptive(bucket.adaptive))
    rest = max(rest, bucket.at + ADAPTIVE_KEPT_US)
  elseif bucket.hadAdaptive then
    redis.call('HDEL', key, 'adaptive')
  end
  local ms = ceil((rest + LINE_GRACE_US - now) / 1000)
  expireAfterMs(key, ms)
  expireAfterMs(bucket.leases, ms)
  expireAfterMs(bucket.queue, ms)
  expireAfterMs(bucket.waiting, ms)
end
