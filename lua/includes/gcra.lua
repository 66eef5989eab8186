--[[
  The generic cell rate algorithm in debt form; src/core/gcra.ts is the model and says why. The same operations in the
  same order on the same doubles, so that both round alike. Reads `now`.
]]
local MAX_DEBT = 4503599627370496 -- 2^52
local MAX_CLOCK_STEP_US = 1000000
local MAX_COLD_AHEAD_US = 60000000

local ceil, floor, fmod, max, min = math.ceil, math.floor, math.fmod, math.max, math.min

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

-- Brings debt, at and line of a bucket that is in units of `rate` and `unit` to `now`, in the units of its limit.
local function drain(bucket, rate, unit)
  local at = bucket.at
  if at - now > MAX_CLOCK_STEP_US then
    if bucket.line > 0 then
      bucket.line = max(0, bucket.line - (at - now))
    end
    bucket.at = now
  elseif now > at then
    local elapsed = now - at
    bucket.debt = elapsed >= ceil(bucket.debt / rate) and 0 or bucket.debt - elapsed * rate
    bucket.at = now
  end
  if rate ~= bucket.rate or unit ~= bucket.unit then
    bucket.debt = convert(bucket.debt, unit, bucket.unit)
  end
end

-- From the bucket's own time until `units` fit.
local function waitFor(bucket, units)
  local over = bucket.debt + units - bucket.capacity
  return over <= 0 and 0 or ceil(over / bucket.rate)
end

local function withinHorizon(bucket, units, ahead)
  return bucket.debt + units <= MAX_DEBT and ahead <= floor((MAX_DEBT - units) / bucket.rate)
end

-- Returns the units by which the bucket was moved forward to the start.
local function commit(bucket, units, ahead, cost)
  local pushed = max(0, ahead * bucket.rate - bucket.debt)
  bucket.debt = bucket.debt + pushed + units
  bucket.granted = bucket.granted + cost
  bucket.line = bucket.open
  bucket.exists = true
  bucket.changed = true
  return pushed
end
