--[[
  acquire: all buckets of a request are charged or none is; src/core/decide/acquire.ts is the model and says why.

  Works on `input` in place, and makes no table for a rate: a call decides hundreds of these. Reads `now`.
]]
--- @include "reply"
--- @include "buckets/rate/gcra"
--- @include "buckets/kinds"
--- @include "buckets/key-overflow"
--- @include "decide/buckets"
--- @include "buckets/window/window"
--- @include "buckets/concurrency/queue"
--- @include "decide/look"
--- @include "decide/charge"
--- @include "decide/refuse"
--- @include "decide/terms"

-- A request reserves only while no limit in it is wider than the one that makes it wait.
local function mayReserve(first, last, binding, start)
  if binding.kind ~= RATE then
    return false
  end
  for index = first, last, 2 do
    local bucket = ownOrShared(buckets[input[index]])
    if binding.attribute > 0 and bucket.attribute ~= binding.attribute then
      return false
    elseif bucket ~= binding and bucket.kind ~= RATE and bucket.seenWait > 0 then
      return false
    elseif not canReserve(bucket) or (bucket.kind == WINDOW and not windowStartable(bucket, start)) then
      return false
    end
  end
  return true
end

-- Whether who would have to wait for too long goes into the line of its share of this limit.
local function hasOwnLine(first, last, leg)
  local share = first + 2 * leg + 2 <= last and buckets[input[first + 2 * leg + 2]]
  return share and share.kind == SHARE and maxTurn > 0 and allCanReserve(first, last)
end

local function grant(first, last, start, wait)
  put(1 + wait)
  for index = first, last, 2 do
    local bucket = ownOrShared(buckets[input[index]])
    local told = charge(bucket, input[index + 1], start)
    if bucket.kind == SLOTS then
      wakeWaiters(bucket)
      put(told)
    elseif wait > 0 and bucket.kind == RATE then
      put(bucket.granted)
      put(told)
    end
  end
end

local function acquire(position)
  local legs = input[position]
  local first, last = position + 1, position + 2 * legs - 1
  -- The leg with the longest pause, line and wait; of equals one that all requests meet, since it may reserve.
  local pausedLeg, pause, pausedAttribute = 0, -1, 0
  local lineLeg, line, lineAttribute = 0, -1, 0
  local waitLeg, wait, waitAttribute = 0, -1, 0
  local slotLeg, slotWaits, slotAttribute = 0, -1, 0
  local longestWait, hasSlots = 0, false
  for leg = 0, legs - 1 do
    local bucket = ownOrShared(buckets[input[first + 2 * leg]])
    local attribute = bucket.attribute
    local legWait, legPause = look(bucket, input[first + 2 * leg + 1])
    bucket.seenWait, bucket.seenPause = legWait, legPause
    longestWait = max(longestWait, legWait)
    if legPause > pause or (legPause == pause and pausedAttribute > 0 and attribute == 0) then
      pausedLeg, pause, pausedAttribute = leg, legPause, attribute
    end
    local legLine = lineAhead(bucket)
    if legLine > line or (legLine == line and lineAttribute > 0 and attribute == 0) then
      lineLeg, line, lineAttribute = leg, legLine, attribute
    end
    -- A queue for slots is joined only when nothing else is in the way.
    local before = legWait
    if bucket.kind == SLOTS then
      hasSlots = true
      before = 0
    end
    if before > wait or (before == wait and waitAttribute > 0 and attribute == 0) then
      waitLeg, wait, waitAttribute = leg, before, attribute
    end
    if legWait > slotWaits or (legWait == slotWaits and slotAttribute > 0 and attribute == 0) then
      slotLeg, slotWaits, slotAttribute = leg, legWait, attribute
    end
  end
  if wait == 0 then
    waitLeg = slotLeg
  end
  local binding = ownOrShared(buckets[input[first + 2 * waitLeg]])
  wait = binding.seenWait
  if pause > 0 then
    refuse(first, last, pausedLeg, PAUSED, longestWait, wait, hasSlots)
  elseif line > 0 then
    local lined = ownOrShared(buckets[input[first + 2 * lineLeg]])
    refuse(first, last, lineLeg, LINE, longestWait, lined.seenWait, hasSlots)
  elseif wait > 0 and (wait > maxWait or not mayReserve(first, last, binding, now + wait)) then
    local leg, reason = waitLeg, REASONS[binding.kind]
    if reason == REASONS[RATE] and hasOwnLine(first, last, leg) then
      leg, reason = leg + 1, REASONS[SHARE]
    end
    refuse(first, last, leg, reason, longestWait, wait, hasSlots)
  elseif not withinHorizons(first, last, now + wait) then
    refuse(first, last, waitLeg, HORIZON, longestWait, wait, hasSlots)
  else
    grant(first, last, now + wait, wait)
  end
  return last + 2
end
