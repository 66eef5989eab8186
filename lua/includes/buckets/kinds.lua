--[[
  The kinds of buckets, numbered as in the header of decide.lua, and until when the state of one matters.
]]
--- @include "buckets/rate/rate"
--- @include "buckets/window/counts"
local RATE, WINDOW, SLOTS, SHARE = 1, 2, 3, 4

-- The microsecond from which the state of a rate or window says nothing more than none does.
local function restOf(bucket)
  if not (bucket.changed or (bucket.joined and not bucket.current)) then
    return bucket.storedRest
  end
  return bucket.limit.kind == RATE and rateRest(bucket) or windowRest(bucket)
end
