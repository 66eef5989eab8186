--[[
  The generic cell rate algorithm in debt form: what a bucket owes, and when it will be paid; src/core/buckets/rate/debt.ts is the
  model and says why. The same operations in the same order on the same doubles, so that both round alike.
]]
local Pause = require 'buckets/pause'
local C = require 'constants'
local Debt = {}
local governorPause = require('call').pause
local ceil, floor, fmod, max, min = math.ceil, math.floor, math.fmod, math.max, math.min

-- Debt in the units of another limit. fmod is exact; Lua's own % is not for large numbers.
function Debt.convert(debt, fromPeriodUs, toPeriodUs)
  local fraction = fmod(debt, fromPeriodUs)
  local tokens = (debt - fraction) / fromPeriodUs
  local rest = 0
  if fraction > 0 then
    rest = min(toPeriodUs, ceil((fraction / fromPeriodUs) * toPeriodUs) + 1)
  end
  return min(C.MAX_DEBT_UNITS, tokens * toPeriodUs + rest)
end

-- The bucket drains at another rate from now on, under the same limit; what is promised keeps its time.
function Debt.changeRate(bucket, rate)
  if rate > bucket.rate and bucket.lastUs > bucket.atUs then
    local aheadUs = min(bucket.lastUs - bucket.atUs, floor(bucket.debt / bucket.rate))
    bucket.debt = min(C.MAX_DEBT_UNITS, bucket.debt + (rate - bucket.rate) * aheadUs)
  end
  bucket.rate = rate
end

-- What is left of a debt after so long.
local function drainedBy(bucket, debt, elapsedUs)
  if elapsedUs <= 0 then
    return debt
  end
  return elapsedUs >= ceil(debt / bucket.rate) and 0 or debt - elapsedUs * bucket.rate
end
Debt.drainedBy = drainedBy

-- What a pause leaves owing at its end, at the least: it is empty, and half of a ramp's worth is held back.
local function emptiedBy(bucket, pause)
  return bucket.limit.burst * bucket.periodUs + ceil((bucket.rate * Pause.rampUs(pause)) / 2)
end

-- Takes a debt from `atUs` through a pause that ends by `us`. Returns the time and the debt from which it goes on.
local function through(bucket, pause, atUs, debt, us)
  if not pause or pause.untilUs < atUs or pause.untilUs > us then
    return atUs, debt
  end
  return pause.untilUs,
    max(min(C.MAX_DEBT_UNITS, emptiedBy(bucket, pause)), drainedBy(bucket, debt, pause.untilUs - atUs))
end

-- What it will owe at `us`, in the units it is in, if nothing happens to it until then. `other`: a pause besides its own.
local function debtAt(bucket, us, other)
  local first, atUs, debt = bucket.pause, bucket.atUs, bucket.debt
  if first and other and other.untilUs < first.untilUs then
    first, other = other, first
  end
  atUs, debt = through(bucket, first, atUs, debt, us)
  atUs, debt = through(bucket, other, atUs, debt, us)
  return drainedBy(bucket, debt, us - atUs)
end
Debt.debtAt = debtAt

local function emptiedSince(bucket, pause)
  if not pause or pause.untilUs > bucket.atUs then
    return 0
  end
  return drainedBy(bucket, emptiedBy(bucket, pause), bucket.atUs - pause.untilUs)
end

-- What pauses that are over leave owing at least, now.
function Debt.emptiedUnits(bucket)
  return max(emptiedSince(bucket, bucket.pause), emptiedSince(bucket, governorPause))
end

-- The tokens of the burst that must remain for more urgent requests.
function Debt.keptTokens(limit, priority)
  if not limit.kept or priority == 0 then
    return 0
  end
  return priority == 1 and limit.kept.normal or limit.kept.low
end

-- What a request asks of the burst, with what must remain.
local function askedTokens(limit, cost, priority)
  local within = limit.oversize and min(cost, limit.burst) or cost
  return limit.kept and within + min(Debt.keptTokens(limit, priority), limit.burst - within) or within
end

-- From the bucket's own time until the cost fits.
function Debt.waitUs(bucket, cost, priority)
  local limit, fromUs = bucket.limit, max(bucket.atUs, bucket.pauseEndUs)
  local asked = askedTokens(limit, cost, priority) * limit.periodUs
  local over = debtAt(bucket, fromUs, governorPause) + asked - bucket.capacity
  return over <= 0 and 0 or fromUs - bucket.atUs + ceil(over / bucket.rate)
end

-- The microsecond of the bucket's clock at which it will be full again. `other`: as for debtAt.
function Debt.fullAtUs(bucket, other)
  local fromUs = max(bucket.atUs, bucket.pause and bucket.pause.untilUs or 0, other and other.untilUs or 0)
  return fromUs + ceil(debtAt(bucket, fromUs, other) / bucket.rate)
end

return Debt
