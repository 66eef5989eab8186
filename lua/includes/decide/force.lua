--[[
  force: charges whatever the buckets hold, from now on; who comes after waits until it has drained. All or, if that
  would leave the exact range, none. Slots are leased even if there are none.
  src/core/decide/acquire.ts is the model. Reads `input`.
]]
--- @include "reply"
--- @include "buckets/kinds"
--- @include "buckets/key-overflow"
--- @include "decide/buckets"
--- @include "decide/look"
--- @include "decide/charge"
local function force(position)
  local legs = input[position]
  local first, last = position + 1, position + 2 * legs - 1
  for index = first, last, 2 do
    look(ownOrShared(buckets[input[index]]), input[index + 1])
  end
  if not withinHorizons(first, last, 0) then
    put(0)
    return last + 2
  end
  put(1)
  for index = first, last, 2 do
    local bucket = ownOrShared(buckets[input[index]])
    local told = charge(bucket, input[index + 1], 0)
    if bucket.kind == SLOTS then
      put(told)
    end
  end
  return last + 2
end
