--[[
  cancel: takes a grant back that has not started. From a rate all of it if nothing was granted there since, else
  nothing: any other refund lets later grants break the bound. From a window what it counted.
  src/core/decide/give-back.ts is the model. Reads `input`, `now`.
]]
--- @include "reply"
--- @include "buckets/rate/gcra"
--- @include "buckets/rate/debt"
--- @include "buckets/kinds"
--- @include "buckets/key-overflow"
--- @include "decide/buckets"
--- @include "buckets/window/window"
local function refund(bucket, cost, grantedAfter, pushed)
  if bucket.granted ~= grantedAfter then
    return false
  end
  local units = cost * bucket.limit.unit + pushed
  bucket.debt = min(bucket.debt, max(emptiedUnits(bucket), bucket.debt - units))
  bucket.promised = max(0, bucket.promised - units)
  bucket.granted = bucket.granted - cost
  bucket.changed = true
  return true
end

local function cancel(position)
  local start, legs = input[position], input[position + 1]
  local first, last = position + 2, position + 4 * legs - 2
  local all = now < start and legs > 0
  if all then
    for index = first, last, 4 do
      local bucket = buckets[input[index]]
      local given = false
      if bucket.exists and restOf(bucket) > now then
        bucket = ownOrShared(bucket)
        if bucket.kind == RATE then
          given = refund(bucket, input[index + 1], input[index + 2], input[index + 3])
        elseif bucket.kind == WINDOW then
          given = correctWindow(bucket, start, -input[index + 1])
        end
      end
      if given then
        bucket.line = bucket.open
        register(bucket)
      end
      all = given and all
    end
  end
  put(all and 1 or 0)
  return first + 4 * legs
end
