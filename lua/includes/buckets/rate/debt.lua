--[[
  The generic cell rate algorithm in debt form: what a bucket owes, and when it will be paid; src/core/buckets/rate/debt.ts is the
  model and says why. The same operations in the same order on the same doubles, so that both round alike.
]]
local Pause = require 'buckets/pause'
local C = require 'constants'
local Debt = {}
local rampedElapsedUs, rampedDeadlineUs = Pause.rampedElapsedUs, Pause.rampedDeadlineUs
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

local function rampEndUs(bucket, pauseEndUs)
  return bucket.limit.adaptive and 0 or pauseEndUs
end

-- What it will owe at `us`, in the units it is in, if nothing happens to it until then. A pause that ends by then leaves it
-- empty.
local function debtAt(bucket, us, pauseEndUs)
  local atUs, debt = bucket.atUs, bucket.debt
  if pauseEndUs < atUs or pauseEndUs > us then
    return us == atUs and debt or drainedBy(bucket, debt, rampedElapsedUs(atUs, us, rampEndUs(bucket, pauseEndUs)))
  end
  local capacity = min(C.MAX_DEBT_UNITS, bucket.limit.burst * bucket.periodUs)
  local atEnd = max(capacity, drainedBy(bucket, debt, pauseEndUs - atUs))
  return drainedBy(bucket, atEnd, rampedElapsedUs(pauseEndUs, us, rampEndUs(bucket, pauseEndUs)))
end
Debt.at = debtAt

-- What a pause that is over leaves owing at least, now.
function Debt.owedByPause(bucket)
  local pauseEndUs = bucket.pauseEndUs
  if pauseEndUs == 0 or pauseEndUs > bucket.atUs then
    return 0
  end
  return drainedBy(bucket, bucket.capacity, rampedElapsedUs(pauseEndUs, bucket.atUs, bucket.rampEndUs))
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
  local limit, pauseEndUs = bucket.limit, bucket.pauseEndUs
  local fromUs = max(bucket.atUs, pauseEndUs)
  local excess = debtAt(bucket, fromUs, pauseEndUs) + askedTokens(limit, cost, priority) * limit.periodUs - bucket.capacity
  return excess <= 0 and 0 or rampedDeadlineUs(ceil(excess / bucket.rate), fromUs, bucket.rampEndUs) - bucket.atUs
end

-- The microsecond of the bucket's clock at which it will be full again.
function Debt.fullUs(bucket, pauseEndUs)
  local fromUs = max(bucket.atUs, pauseEndUs)
  local debt = debtAt(bucket, fromUs, pauseEndUs)
  return rampedDeadlineUs(ceil(debt / bucket.rate), fromUs, rampEndUs(bucket, pauseEndUs))
end

return Debt
