--[[
  peek: what each bucket looks like to a request; takes nothing, and no place in a line. src/core/decide/acquire.ts is
  the model. Reads `input`, `now`.
]]
--- @include "reply"
--- @include "buckets/rate/gcra"
--- @include "buckets/rate/debt"
--- @include "buckets/kinds"
--- @include "buckets/key-overflow"
--- @include "decide/buckets"
--- @include "buckets/window/counts"
--- @include "buckets/concurrency/slots"
--- @include "decide/terms"
--- @include "decide/look"
local function effectiveOf(bucket)
  if bucket.kind == RATE then
    return bucket.rate
  elseif bucket.kind == SHARE then
    return bucket.view
  end
  return bucket.kind == SLOTS and slotsOf(bucket) or bucket.limit.max
end

local roomOf
function roomOf(bucket)
  if bucket.kind == RATE then
    return max(0, floor((bucket.capacity - bucket.debt) / bucket.limit.unit))
  elseif bucket.kind == WINDOW then
    return max(0, bucket.limit.max - usedOf(bucket))
  elseif bucket.kind == SLOTS then
    return max(0, slotsOf(bucket) - bucket.held)
  end
  return emptyOf(bucket.whole) > now and 0 or roomOf(bucket.whole)
end

local function peek(position)
  local legs = input[position + 1]
  local first, last = position + 2, position + 1 + 2 * legs
  priority, holder = input[position], ''
  for index = first, last, 2 do
    local bucket = ownOrShared(buckets[input[index]])
    local wait, paused = look(bucket, input[index + 1])
    put(paused > 0 and 0 or roomOf(bucket))
    put(wait)
    put(bucket.seenLine == 0 and 0 or bucket.seenLine - now)
    put(paused)
    put(bucket.granted)
    put(bucket.refused)
    put(effectiveOf(bucket))
  end
  return last + 1
end
