--[[
  What a bucket will owe, and when it will be paid; src/core/buckets/rate/debt.ts is the model and says why. Reads `closedUntil`.
]]
--- @include "buckets/rate/gcra"
--- @include "buckets/ramp"

-- When the pause of a bucket or of its governor ends or ended, whichever is later; 0: there was none.
local function emptyOf(bucket)
  return max(bucket.closed, closedUntil)
end

-- The end of the pause that a limit has a ramp after; 0: none. An adaptive one comes back by itself.
local function rampEndOf(bucket, empty)
  return bucket.limit.adaptive and 0 or empty
end

local function lessDrained(bucket, debt, elapsed)
  if elapsed <= 0 then
    return debt
  end
  return elapsed >= ceil(debt / bucket.rate) and 0 or debt - elapsed * bucket.rate
end

-- What it will owe at `us`, in the units it is in, if nothing happens to it until then. A pause that ends
-- by then leaves it empty.
local function debtAt(bucket, us, empty)
  if empty < bucket.at or empty > us then
    return lessDrained(bucket, bucket.debt, worth(bucket.at, us, rampEndOf(bucket, empty)))
  end
  local capacity = min(MAX_DEBT, bucket.limit.burst * bucket.unit)
  local atEnd = max(capacity, lessDrained(bucket, bucket.debt, empty - bucket.at))
  return lessDrained(bucket, atEnd, worth(empty, us, rampEndOf(bucket, empty)))
end

-- What a pause that is over leaves owing at least, now.
local function emptiedUnits(bucket)
  local empty = emptyOf(bucket)
  if empty == 0 or empty > bucket.at then
    return 0
  end
  return lessDrained(bucket, bucket.capacity, worth(empty, bucket.at, rampEndOf(bucket, empty)))
end

-- From the bucket's own time until the cost fits.
local function waitFor(bucket, cost, priority)
  local limit, empty = bucket.limit, emptyOf(bucket)
  local from = max(bucket.at, empty)
  local over = debtAt(bucket, from, empty) + askedTokens(limit, cost, priority) * limit.unit - bucket.capacity
  return over <= 0 and 0 or whenWorth(ceil(over / bucket.rate), from, rampEndOf(bucket, empty)) - bucket.at
end

-- The microsecond of the bucket's clock at which it will be full again.
local function fullAt(bucket, empty)
  local from = max(bucket.at, empty)
  return whenWorth(ceil(debtAt(bucket, from, empty) / bucket.rate), from, rampEndOf(bucket, empty))
end
