--[[
  The generic cell rate algorithm in debt form; src/core/buckets/rate/debt.ts is the model and says why. The same operations in the
  same order on the same doubles, so that both round alike. Reads `now`.
]]
local MAX_DEBT = 4503599627370496 -- 2^52
local MAX_CLOCK_STEP_US = 1000000
local MAX_COLD_AHEAD_US = 60000000
local MAX_AHEAD_US = 315360000000000
local RECALL_US = 1000000

local ceil, floor, fmod, max, min = math.ceil, math.floor, math.fmod, math.max, math.min

-- A stamp that a clock wrote which has been put right since.
local function movedBy(us, step)
  return us == 0 and 0 or max(0, us - step)
end

-- Debt in the units of another limit. fmod is exact; Lua's own % is not for large numbers.
local function convert(debt, fromUnit, toUnit)
  local fraction = fmod(debt, fromUnit)
  local tokens = (debt - fraction) / fromUnit
  local rest = 0
  if fraction > 0 then
    rest = min(toUnit, ceil((fraction / fromUnit) * toUnit) + 1)
  end
  return min(MAX_DEBT, tokens * toUnit + rest)
end

-- The bucket drains at another rate from now on, under the same limit; what is promised keeps its time.
local function repace(bucket, rate)
  if rate > bucket.rate and bucket.last > bucket.at then
    local ahead = min(bucket.last - bucket.at, floor(bucket.debt / bucket.rate))
    bucket.debt = min(MAX_DEBT, bucket.debt + (rate - bucket.rate) * ahead)
  end
  bucket.rate = rate
end

-- The rate at which a bucket drains that may be adaptive, or have been over its limit for long.
local function penalised(limit, rate)
  return max(1, floor((rate * limit.penaltyPermille) / 1000))
end

-- What a request asks of the burst, with what must remain for more urgent ones.
local function askedTokens(limit, cost, priority)
  local within = limit.oversize and min(cost, limit.burst) or cost
  if limit.ranked then
    return within + min(limit.kept[priority], limit.burst - within)
  end
  return within
end

local function withinHorizon(bucket, units, ahead)
  return bucket.debt + units <= MAX_DEBT and ahead <= floor((MAX_DEBT - units) / bucket.rate)
end
