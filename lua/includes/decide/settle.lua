--[[
  settle: corrects what a grant has cost; src/core/decide/give-back.ts is the model. An overrun becomes debt. Of what was not
  used, only what has not drained since the start is given back, and only if nothing is promised ahead.
  Reads `input`, `now`.
]]
--- @include "reply"
--- @include "buckets/rate/gcra"
--- @include "buckets/rate/debt"
--- @include "buckets/kinds"
--- @include "buckets/key-overflow"
--- @include "decide/buckets"
--- @include "buckets/window/window"
local function settleRate(bucket, start, cost, actual)
  local limit = bucket.limit
  if actual >= cost then
    bucket.debt = min(MAX_DEBT, bucket.debt + (actual - cost) * limit.unit)
    bucket.granted = bucket.granted + actual - cost
  elseif bucket.last <= bucket.at then
    local elapsed, paid = max(0, bucket.at - start), cost * limit.unit
    local undrained = elapsed >= ceil(paid / limit.fastest) and 0 or paid - elapsed * limit.fastest
    local left = bucket.debt - min((cost - actual) * limit.unit, undrained)
    bucket.debt = min(bucket.debt, max(emptiedUnits(bucket), left))
  end
  bucket.line = bucket.open
  bucket.exists = true
  bucket.changed = true
end

local function settle(position)
  local start, givesBack, legs = input[position], input[position + 1] == 1, input[position + 2]
  local first, last = position + 3, position + 2 + 3 * legs
  for index = first, last, 3 do
    local bucket, cost, actual = buckets[input[index]], input[index + 1], input[index + 2]
    if actual > cost or (actual < cost and givesBack and bucket.exists and restOf(bucket) > now) then
      bucket = ownOrShared(bucket)
      if bucket.kind == RATE then
        settleRate(bucket, start, cost, actual)
      else
        correctWindow(bucket, start, actual - cost)
        bucket.line = bucket.open
        bucket.exists = true
        bucket.changed = true
      end
      register(bucket)
    end
  end
  put(1)
  return last + 1
end
