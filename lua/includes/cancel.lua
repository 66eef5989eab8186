--[[
  cancel: takes a grant back that has not started. From each bucket all of it if nothing was granted there since, else
  nothing: any other refund lets later grants break the bound.
]]
--- @include "numbers"
--- @include "buckets"
local function refund(bucket, cost, grantedAfter, pushed)
  if not bucket.exists or bucket.granted ~= grantedAfter then
    return false
  end
  bucket.debt = max(0, bucket.debt - cost * bucket.unit - pushed)
  bucket.granted = bucket.granted - cost
  bucket.changed = true
  openLine(bucket, bucket.at)
  return true
end

local function cancel(position)
  local start, legs = input[position], input[position + 1]
  local first, last = position + 2, position + 4 * legs - 2
  local all = now < start and legs > 0
  if all then
    for index = first, last, 4 do
      all = refund(buckets[input[index]], input[index + 1], input[index + 2], input[index + 3]) and all
    end
  end
  put(all and 1 or 0)
  return first + 4 * legs
end
