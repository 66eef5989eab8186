--[[
  What time, pauses and changes of the limits make of a bucket; src/core/draining.ts is the model and says why. Reads `now`,
  `closedUntil`, `version` and `changedAt`.
]]
--- @include "numbers"
--- @include "gcra"
--- @include "adaptive"
local ADAPTIVE_KEPT_US = 3600000000

local function adaptedAt(bucket, limit, idle)
  local state = bucket.adaptive
  if not state or idle > ADAPTIVE_KEPT_US then
    return adaptiveBegun(limit.adaptive, limit.rate)
  end
  adaptiveRise(state, limit.adaptive, limit.adaptive.period)
  return state
end

local function stepBack(bucket)
  local step = bucket.at - now
  bucket.at = now
  bucket.line = movedBy(bucket.line, step)
  bucket.last = movedBy(bucket.last, step)
  bucket.closed = movedBy(bucket.closed, step)
  bucket.over = movedBy(bucket.over, step)
  bucket.penalty = movedBy(bucket.penalty, step)
end

-- Lets time pass. A pause that is over has left the bucket empty at its end.
local function advance(bucket, limit, unit, us)
  local empty = max(bucket.closed, closedUntil)
  if empty > bucket.at and empty <= us then
    drainTo(bucket, empty)
    bucket.debt = max(bucket.debt, min(MAX_DEBT, limit.burst * unit))
  end
  drainTo(bucket, us)
end

-- Takes the bucket to when the limits changed, and there into the terms of the new ones; what is promised later is recalled.
local function changeOver(bucket, limit, unit, burst)
  advance(bucket, limit, unit, changedAt == 0 and now or min(changedAt, now))
  if bucket.last > bucket.at + RECALL_US and bucket.promised > 0 then
    bucket.debt = min(bucket.debt, max(burst * unit + bucket.rate * RECALL_US, bucket.debt - bucket.promised))
    bucket.last = bucket.at + RECALL_US
  end
  bucket.promised = 0
  if bucket.line > bucket.at then
    local pace = (bucket.rate * limit.unit) / (limit.rate * unit)
    bucket.line = bucket.at + min(MAX_AHEAD_US, ceil((bucket.line - bucket.at) * pace))
  end
  if unit ~= limit.unit then
    bucket.debt = convert(bucket.debt, unit, limit.unit)
  end
end

-- A paused bucket is empty at the end of its pause, whatever its rate. Like a promise: should it end early, that is taken back.
local function keepEmpty(bucket)
  local empty = max(bucket.closed, closedUntil)
  local paused = empty > now and capacityAt(bucket.limit, bucket.rate, empty - now) or 0
  if paused > bucket.debt then
    if empty > now + RECALL_US then
      bucket.promised = bucket.promised + paused - bucket.debt
    end
    bucket.last = max(bucket.last, empty)
    bucket.debt = paused
  end
end

-- Brings a bucket that is in the units it was stored in to now, in those of its limit.
local function drain(bucket, limit, unit, burst, storedVersion)
  if bucket.at - now > MAX_CLOCK_STEP_US then
    stepBack(bucket)
  end
  local rate = limit.rate
  if limit.adaptive then
    bucket.adaptive = adaptedAt(bucket, limit, now - bucket.at)
    rate = bucket.adaptive.value
  else
    bucket.adaptive = nil
  end
  if limit.penaltyAfter > 0 and bucket.penalty > now then
    rate = penalised(limit, rate)
  end
  if storedVersion ~= version or unit ~= limit.unit then
    changeOver(bucket, limit, unit, burst)
    bucket.rate = rate
  end
  advance(bucket, limit, limit.unit, now)
  if bucket.last <= now + RECALL_US then
    bucket.promised = 0
  end
  repace(bucket, rate)
  keepEmpty(bucket)
end
