--[[
  Buckets of rate limits: read, brought to now, charged, written. src/core/buckets/rate/debt.ts is the model. A missing field has its
  default, so that a state written by another version of this script, or by hand, is no error. Reads `now`,
  `coldAt`, `closedUntil`, `version`.
]]
--- @include "numbers"
--- @include "clock"
--- @include "buckets/rate/gcra"
--- @include "buckets/line"
--- @include "fields"
--- @include "buckets/ramp"
--- @include "buckets/rate/debt"
--- @include "buckets/rate/drain"
--- @include "buckets/adaptive"
--- @include "buckets/adaptive-text"
-- The microsecond from which the state says nothing more than none does.
local function rateRest(bucket)
  local rest = max(fullAt(bucket, bucket.closed), bucket.penalty)
  if bucket.adaptive then
    rest = max(rest, bucket.at + ADAPTIVE_KEPT_US)
  end
  return rest + LINE_GRACE_US
end

local function loadRate(bucket, limit)
  local stored = redis.call(
    'HMGET', bucket.key, 'debt', 'at', 'line', 'granted', 'refused', 'last', 'closed', 'rate', 'unit', 'burst',
    'version', 'over', 'penalty', 'adaptive', 'promised', 'ramp'
  )
  for field = 1, 8 do
    bucket.exists = bucket.exists or stored[field] ~= false
  end
  local empty = bucket.exists and 0 or max(coldAt, min(closedUntil, now))
  local ahead = max(0, empty - now)
  local debt = empty > 0 and min(MAX_DEBT, limit.burst * limit.unit + ahead * limit.rate) or 0
  bucket.capacity = limit.burst * limit.unit
  bucket.debt = tonumber(stored[1]) or debt
  bucket.at = tonumber(stored[2]) or (empty > 0 and empty - ahead or now)
  bucket.line = tonumber(stored[3]) or 0
  bucket.granted, bucket.refused = tonumber(stored[4]) or 0, tonumber(stored[5]) or 0
  bucket.last, bucket.closed = tonumber(stored[6]) or 0, tonumber(stored[7]) or 0
  bucket.rate = tonumber(stored[8]) or limit.rate
  bucket.over, bucket.penalty = tonumber(stored[12]) or 0, tonumber(stored[13]) or 0
  bucket.ramp = tonumber(stored[16]) or 0
  bucket.hadRamp = bucket.ramp > 0
  bucket.promised = tonumber(stored[15]) or 0
  bucket.storedPromised = bucket.promised
  bucket.hadAdaptive = stored[14] ~= false
  bucket.adaptive = stored[14] and readAdaptive(stored[14]) or nil
  if not bucket.exists and limit.adaptive then
    bucket.adaptive = adaptiveBegun(limit.adaptive, limit.rate)
  end
  local unit, burst = tonumber(stored[9]) or limit.unit, tonumber(stored[10]) or limit.burst
  local storedVersion = tonumber(stored[11]) or version
  local storedAt, storedRate, storedClosed = bucket.at, bucket.rate, bucket.closed
  bucket.unit = unit
  local wasFullAt = fullAt(bucket, emptyOf(bucket))
  bucket.storedRest = rateRest(bucket)
  bucket.hadLine = bucket.line > 0
  bucket.storedOver = bucket.over
  drain(bucket, limit, burst, storedVersion)
  local full = bucket.debt == 0 and emptyOf(bucket) <= bucket.at
  openLine(bucket, full, wasFullAt)
  if full and bucket.at - wasFullAt >= min(LINE_GRACE_US, ceil(limit.unit / (2 * bucket.rate))) then
    bucket.over = 0
  end
  if emptyOf(bucket) > bucket.over then
    bucket.over = 0
  end
  local same = unit == limit.unit and burst == limit.burst and storedVersion == version
  bucket.described = same and stored[9] and stored[10] and stored[11] and stored[8] and storedRate == bucket.rate
  -- A clock that was put right, other limits.
  bucket.outdated = storedAt > bucket.at or storedVersion ~= version
  -- Whether the state as stored says the same as here. Else a place in the line has to be written with all of it.
  bucket.current = bucket.exists and storedAt <= bucket.at and same
    and (storedRate == bucket.rate or limit.adaptive ~= nil) and max(storedClosed, closedUntil) <= storedAt
end

-- Returns the units by which the bucket was moved forward to the start.
local function commitRate(bucket, cost, start)
  local units = cost * bucket.limit.unit
  local ahead = start > bucket.at and start - bucket.at or 0
  local pushed = max(0, worth(bucket.at, bucket.at + ahead, rampEndOf(bucket, emptyOf(bucket))) * bucket.rate - bucket.debt)
  bucket.debt = bucket.debt + pushed + units
  bucket.granted = bucket.granted + cost
  if ahead > RECALL_US and cost <= bucket.limit.burst then
    bucket.promised = bucket.promised + pushed + units
  end
  if ahead > 0 then
    bucket.last = max(bucket.last, bucket.at + ahead)
  end
  if bucket.adaptive then
    adaptiveUse(bucket.adaptive, cost)
  end
  bucket.line = bucket.open
  bucket.exists = true
  bucket.changed = true
  return pushed
end

-- Counts how long a bucket has been over its limit. Whether its penalty begins now.
local function overLimit(bucket)
  local limit = bucket.limit
  if limit.penaltyAfter == 0 or bucket.penalty > bucket.at then
    return false
  end
  if bucket.over == 0 then
    bucket.over = now
  end
  if now - bucket.over < limit.penaltyAfter then
    return false
  end
  bucket.over = 0
  bucket.penalty = now + limit.penaltyFor
  repace(bucket, penalised(limit, bucket.rate))
  bucket.changed = true
  bucket.described = false
  return true
end

local function writeRate(bucket)
  local key = bucket.key
  redis.call('HSET', key, 'debt', whole(bucket.debt), 'at', whole(bucket.at), 'granted', whole(bucket.granted))
  if not bucket.described then
    redis.call(
      'HSET', key, 'rate', whole(bucket.rate), 'unit', whole(bucket.limit.unit), 'burst', whole(bucket.limit.burst),
      'version', whole(version)
    )
  end
  setOrDelete(key, 'line', bucket.line, bucket.hadLine)
  setOrDelete(key, 'refused', bucket.refused, false)
  setOrDelete(key, 'last', bucket.last, false)
  setOrDelete(key, 'promised', bucket.promised, bucket.storedPromised > 0)
  setOrDelete(key, 'closed', bucket.closed, false)
  setOrDelete(key, 'ramp', bucket.ramp, bucket.hadRamp)
  setOrDelete(key, 'over', bucket.over, bucket.storedOver > 0)
  setOrDelete(key, 'penalty', bucket.penalty, false)
  if bucket.adaptive then
    redis.call('HSET', key, 'adaptive', writeAdaptive(bucket.adaptive))
  elseif bucket.hadAdaptive then
    redis.call('HDEL', key, 'adaptive')
  end
end

local function saveRate(bucket)
  if bucket.changed or (bucket.joined and not bucket.current) then
    writeRate(bucket)
    -- A full bucket is the same as none once its line is forgotten; the state carries its own times, this is clean-up.
    expireAfterMs(bucket.key, ceil((rateRest(bucket) - now) / 1000))
    return
  end
  -- Debt and time stay: a bucket is full since it was, not since its last refusal, or its line is never forgotten.
  saveRefusals(bucket)
  if (bucket.joined or bucket.newlyRefused > 0) and bucket.over ~= bucket.storedOver then
    setOrDelete(bucket.key, 'over', bucket.over, true)
  end
end
