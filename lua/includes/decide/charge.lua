--[[
  What a grant takes from the buckets of a request; src/core/decide/acquire.ts is the model. Reads `input`.
]]
--- @include "buckets/rate/gcra"
--- @include "buckets/kinds"
--- @include "buckets/key-overflow"
--- @include "decide/buckets"
--- @include "buckets/rate/rate"
--- @include "buckets/window/window"
--- @include "buckets/concurrency/leases"
--- @include "buckets/share/share"
--- @include "decide/terms"

local function withinHorizons(first, last, start)
  for index = first, last, 2 do
    local bucket = ownOrShared(buckets[input[index]])
    if bucket.kind == RATE
      and not withinHorizon(bucket, input[index + 1] * bucket.limit.unit, max(0, start - bucket.at)) then
      return false
    end
  end
  return true
end

-- Takes the cost from a bucket. Returns the units by which a rate was moved forward, or a fencing number.
local function charge(bucket, cost, start)
  local told = 0
  if bucket.kind == RATE then
    told = commitRate(bucket, cost, start)
  elseif bucket.kind == WINDOW then
    countIn(bucket, cost, start)
  elseif bucket.kind == SLOTS then
    return lease(bucket, cost, holder)
  else
    chargeShare(bucket, cost)
  end
  register(bucket)
  return told
end
