--[[
  force: charges whatever the buckets hold, from now on; who comes after waits until it has drained. All or, if that
  would leave the exact range, none.
]]
--- @include "numbers"
--- @include "gcra"
--- @include "acquire"
local function force(position)
  local legs = input[position]
  local first, last = position + 1, position + 2 * legs - 1
  for index = first, last, 2 do
    local bucket = buckets[input[index]]
    if not withinHorizon(bucket, input[index + 1] * bucket.unit, 0) then
      put(0)
      return last + 2
    end
  end
  for index = first, last, 2 do
    local bucket, cost = buckets[input[index]], input[index + 1]
    commit(bucket, cost * bucket.unit, 0, cost)
  end
  put(1)
  return last + 2
end
