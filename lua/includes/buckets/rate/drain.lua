--[[
  What time, pauses and changes of the limits make of a bucket; src/core/buckets/rate/drain.ts is the model and says why. Reads `now`,
  `closedUntil`, `version` and `changedAt`.
]]
--- @include "buckets/rate/gcra"
--- @include "buckets/ramp"
--- @include "buckets/rate/debt"
--- @include "buckets/adaptive"
local ADAPTIVE_KEPT_US = 3600000000
local drain
-- Lua allows 200 locals in one function: what only this part needs stays in its block.
do
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
    bucket.ramp = movedBy(bucket.ramp, step)
    bucket.over = movedBy(bucket.over, step)
    bucket.penalty = movedBy(bucket.penalty, step)
  end

  local function advance(bucket, us)
    if us >= bucket.at then
      bucket.promised = lessDrained(bucket, bucket.promised, worth(bucket.at, us, rampEndOf(bucket, emptyOf(bucket))))
      bucket.debt = debtAt(bucket, us, emptyOf(bucket))
      bucket.at = us
    end
  end

  -- What it drains at: what an adaptive limit has come to, or the limit's rate; in a penalty a share of it.
  local function rateAt(bucket, limit, us)
    local rate = bucket.adaptive and bucket.adaptive.value or limit.rate
    return limit.penaltyAfter > 0 and bucket.penalty > us and penalised(limit, rate) or rate
  end

  -- Takes the bucket to when the limits changed, and there into the terms of the new ones; what is promised later is recalled.
  local function changeOver(bucket, limit, burst)
    local unit = bucket.unit
    advance(bucket, changedAt == 0 and now or min(changedAt, now))
    local later = bucket.last - bucket.at - RECALL_US
    if later > 0 and bucket.promised > 0 then
      local recalled = min(bucket.promised, burst * unit + bucket.rate * later)
      bucket.debt = min(bucket.debt, max(burst * unit + bucket.rate * RECALL_US, bucket.debt - recalled))
      bucket.last = bucket.at + RECALL_US
    end
    bucket.promised = 0
    if bucket.line > bucket.at then
      local from = min(bucket.line, max(bucket.at, emptyOf(bucket)))
      local pace = (bucket.rate * limit.unit) / (limit.rate * unit)
      bucket.line = from + min(MAX_AHEAD_US, ceil((bucket.line - from) * pace))
    end
    if unit ~= limit.unit then
      bucket.debt = convert(bucket.debt, unit, limit.unit)
      bucket.unit = limit.unit
    end
    bucket.rate = rateAt(bucket, limit, bucket.at)
  end

  -- Another pause came before the ramp of one was over: what was promised in that may drain faster from now on.
  local function leaveRamp(bucket)
    if bucket.last > bucket.at then
      bucket.debt = min(MAX_DEBT, bucket.debt + (bucket.rate * RAMP_US) / 2)
    end
  end

  -- Brings a bucket that is in the units it was stored in to now, in those of its limit.
  function drain(bucket, limit, burst, storedVersion)
    if bucket.at - now > MAX_CLOCK_STEP_US then
      stepBack(bucket)
    end
    local empty = emptyOf(bucket)
    if bucket.ramp ~= 0 and bucket.ramp ~= rampEndOf(bucket, empty) then
      leaveRamp(bucket)
    end
    bucket.adaptive = limit.adaptive and adaptedAt(bucket, limit, now - bucket.at) or nil
    local rate = rateAt(bucket, limit, now)
    if storedVersion ~= version or bucket.unit ~= limit.unit then
      changeOver(bucket, limit, burst)
    end
    if bucket.penalty > bucket.at and bucket.penalty < now then
      advance(bucket, bucket.penalty)
      repace(bucket, rate)
    end
    advance(bucket, now)
    if bucket.last <= now + RECALL_US then
      bucket.promised = 0
    end
    repace(bucket, rate)
    bucket.ramp = empty <= now and isRamping(now, rampEndOf(bucket, empty)) and empty or 0
  end
end
