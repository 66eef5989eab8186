--[[
  peek: what each bucket looks like to a request; takes nothing, and no place in a line.
]]
--- @include "numbers"
--- @include "gcra"
--- @include "buckets"
local function peek(position)
  local legs = input[position]
  local first, last = position + 1, position + 2 * legs - 1
  for index = first, last, 2 do
    local bucket = buckets[input[index]]
    local wait = waitFor(bucket, input[index + 1] * bucket.unit)
    put(max(0, floor((bucket.capacity - bucket.debt) / bucket.unit)))
    put(wait == 0 and 0 or bucket.at - now + wait)
    put(bucket.open == 0 and 0 or bucket.open - now)
    put(bucket.granted)
    put(bucket.refused)
  end
  return last + 2
end
