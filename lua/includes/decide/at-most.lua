--[[
  atMost: takes as many whole tokens as there are, up to a number, from each bucket as many; a fraction stays where it is.
  src/core/decide/acquire.ts is the model. Reads `input`, `now`.
]]
--- @include "reply"
--- @include "buckets/rate/gcra"
--- @include "buckets/kinds"
--- @include "buckets/key-overflow"
--- @include "decide/buckets"
--- @include "buckets/window/counts"
--- @include "buckets/concurrency/slots"
--- @include "decide/terms"
--- @include "decide/look"
--- @include "decide/charge"
local function availableOf(bucket)
  local wait, paused = look(bucket, 1)
  if paused > 0 or lineAhead(bucket) > 0 then
    return 0
  elseif bucket.kind == RATE then
    local kept = bucket.limit.ranked and bucket.limit.kept[priority] or 0
    return max(0, max(0, floor((bucket.capacity - bucket.debt) / bucket.limit.unit)) - kept)
  elseif bucket.kind == WINDOW then
    return max(0, bucket.limit.max - usedOf(bucket))
  elseif bucket.kind == SLOTS then
    return max(0, slotsOf(bucket) - bucket.held)
  end
  return wait > 0 and 0 or MAX_DEBT
end

local function atMost(position)
  local available, legs = input[position], input[position + 2]
  priority, returning, holder = input[position + 1], false, ''
  local first, last = position + 3, position + 2 + legs
  for index = first, last do
    available = min(available, availableOf(ownOrShared(buckets[input[index]])))
  end
  put(available)
  if available >= 1 then
    for index = first, last do
      charge(ownOrShared(buckets[input[index]]), available, now)
    end
  end
  return last + 1
end
