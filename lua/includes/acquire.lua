--[[
  acquire: all buckets of a request are charged or none is; src/core/decide.ts is the model and says why.

  Works on `input` in place, and makes no table: a call decides hundreds of these. Reads `now`.
]]
--- @include "numbers"
--- @include "gcra"
--- @include "line"
--- @include "buckets"
local RATE, LINE, HORIZON = 0, 1, 2

local maxWait, maxSlot, allGiveSlots, returning, patience

local function setTerms(position)
  maxWait, maxSlot = input[position], input[position + 1]
  allGiveSlots, returning = input[position + 2] == 1, input[position + 3] == 1
  patience = input[position + 4]
  return position + 5
end

local function refuse(first, leg, reason, longestWait)
  local bucket, cost = buckets[input[first + 2 * leg]], input[first + 2 * leg + 1]
  local keepsPlace = returning and longestWait <= patience
  local takesSlot = not keepsPlace and (reason == LINE or allGiveSlots or bucket.attribute > 0)
  local wait = takesSlot and max(longestWait, bucket.open - now) or longestWait
  local slotted = takesSlot and wait <= maxSlot
  if slotted then
    bucket.refused = bucket.refused + 1
    -- The line moves on by its own need: another limit of this request must not close it for everybody else.
    local units = cost * bucket.unit
    local own = waitFor(bucket, units)
    joinLine(bucket, units, max(own > 0 and bucket.at + own or now, bucket.open))
  elseif bucket.exists then
    bucket.refused = bucket.refused + 1
    bucket.newlyRefused = bucket.newlyRefused + 1
  end
  put(0)
  put(leg)
  put(reason)
  put(wait)
  put(slotted and 1 or 0)
end

-- A request reserves only while no limit in it is wider than the one that makes it wait.
local function mayReserve(first, last, attribute)
  if attribute == 0 then
    return true
  end
  for index = first, last, 2 do
    if buckets[input[index]].attribute ~= attribute then
      return false
    end
  end
  return true
end

local function withinHorizons(first, last, start)
  for index = first, last, 2 do
    local bucket = buckets[input[index]]
    if not withinHorizon(bucket, input[index + 1] * bucket.unit, max(0, start - bucket.at)) then
      return false
    end
  end
  return true
end

local function grant(first, last, start, wait)
  put(1 + wait)
  for index = first, last, 2 do
    local bucket, cost = buckets[input[index]], input[index + 1]
    local pushed = commit(bucket, cost * bucket.unit, start > bucket.at and start - bucket.at or 0, cost)
    if wait > 0 then
      put(bucket.granted)
      put(pushed)
    end
  end
end

local function acquire(position)
  local legs = input[position]
  local first, last = position + 1, position + 2 * legs - 1
  -- The leg with the longest line and with the longest wait; of equals a governor-wide one, since it may reserve.
  local lineLeg, line, lineAttribute = 0, -1, 0
  local waitLeg, wait, waitAttribute = 0, -1, 0
  for leg = 0, legs - 1 do
    local bucket = buckets[input[first + 2 * leg]]
    local attribute = bucket.attribute
    local legWait = waitFor(bucket, input[first + 2 * leg + 1] * bucket.unit)
    if legWait > 0 then
      legWait = bucket.at - now + legWait
    end
    if legWait > wait or (legWait == wait and waitAttribute > 0 and attribute == 0) then
      waitLeg, wait, waitAttribute = leg, legWait, attribute
    end
    local legLine = (returning or bucket.open == 0) and 0 or bucket.open - now
    if legLine > line or (legLine == line and lineAttribute > 0 and attribute == 0) then
      lineLeg, line, lineAttribute = leg, legLine, attribute
    end
  end
  if line > 0 then
    refuse(first, lineLeg, LINE, wait)
  elseif wait > maxWait or (wait > 0 and not mayReserve(first, last, waitAttribute)) then
    refuse(first, waitLeg, RATE, wait)
  elseif wait > 0 and not withinHorizons(first, last, now + wait) then
    refuse(first, waitLeg, HORIZON, wait)
  else
    -- What starts now fits into its buckets, and so into the exact range.
    grant(first, last, now + wait, wait)
  end
  return last + 2
end
