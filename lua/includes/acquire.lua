--[[
  acquire: all buckets of a request are charged or none is; src/core/decide.ts is the model and says why.

  Works on `input` in place, and makes no table for a rate: a call decides hundreds of these. Reads `now`.
]]
--- @include "reply"
--- @include "gcra"
--- @include "line"
--- @include "buckets"
--- @include "queue-places"
--- @include "queue"
--- @include "leases"
local LINE, HORIZON, PAUSED, WHOLE_PAUSED = 1, 2, 6, 7
local REASONS = { [RATE] = 0, [WINDOW] = 3, [SLOTS] = 4, [SHARE] = 5 }
local MAX_PAUSE_SLOTTED_US = 60000000

local maxWait, maxSlot, allGiveSlots, returning, patience, priority, queues = 0, 0, false, false, 0, 1, false
local holder = ''

local function setTerms(position)
  maxWait, maxSlot = input[position], input[position + 1]
  allGiveSlots, returning = input[position + 2] == 1, input[position + 3] == 1
  patience, priority, queues = input[position + 4], input[position + 5], input[position + 6] == 1
  return position + 7
end

local function setHolder(position)
  holder = words[input[position]]
  return position + 1
end

local function pausedFor(bucket)
  return max(0, max(bucket.closed, closedUntil) - now)
end

-- From the store's now until there is room; sets `seenLine`, the line as this request sees it.
local function look(bucket, cost)
  local paused = pausedFor(bucket)
  bucket.seenLine = bucket.open
  local wait
  if bucket.kind == RATE then
    wait = waitFor(bucket, cost, priority)
    return wait > 0 and bucket.at - now + wait or 0, paused
  elseif bucket.kind == WINDOW then
    wait = windowWait(bucket, cost)
  elseif bucket.kind == SLOTS then
    return max(paused, slotWait(bucket, cost, holder)), paused
  else
    local spare
    wait, spare = shareWait(bucket, cost, paused)
    if spare then
      bucket.seenLine = 0
    end
  end
  return max(paused, wait > 0 and bucket.at - now + wait or 0), paused
end

local function lineAhead(bucket)
  local line = bucket.seenLine
  if line == 0 or returning or (bucket.kind == RATE and bucket.limit.ranked and priority == 0) then
    return 0
  end
  -- Nobody has come for what the share has: those of the line stand behind this one in their queue.
  if bucket.kind == SHARE and bucket.owed == 0 then
    return 0
  end
  return line - now
end

-- Whether grants from this bucket are made ahead at all.
local function canReserve(bucket)
  if bucket.kind == RATE then
    local follows = not bucket.limit.adaptive and (not bucket.limit.ranked or priority == 0)
    return follows and emptyOf(bucket) <= now
  end
  return bucket.kind ~= SLOTS
end

local function allCanReserve(first, last)
  for index = first, last, 2 do
    if not canReserve(ownOrShared(buckets[input[index]])) then
      return false
    end
  end
  return true
end

-- How far ahead a slot may lie; 0: none is given.
local function slotBound(first, last, bucket, reason)
  if bucket.attribute > 0 or allGiveSlots then
    return maxSlot
  elseif bucket.kind == RATE and allCanReserve(first, last) then
    return reason == LINE and maxSlot or 0
  end
  return min(maxSlot, maxWait)
end

local function intervalOf(bucket, cost)
  if bucket.kind == RATE then
    return ceil((cost * bucket.limit.unit) / bucket.rate)
  elseif bucket.kind == WINDOW then
    return ceil((cost * bucket.limit.window) / bucket.limit.max)
  end
  return ceil(shareUnits(bucket, cost) / bucket.view)
end

local function join(bucket, cost, wait)
  local slot = max(now + wait, bucket.seenLine)
  if bucket.kind == RATE then
    local behind = whenWorth(intervalOf(bucket, cost), slot, emptyOf(bucket))
    overLimit(bucket)
    joinLine(bucket, behind)
  else
    joinLine(bucket, slot + intervalOf(bucket, cost))
    if bucket.kind == SHARE then
      stateShare(bucket)
    end
  end
  register(bucket)
end

-- A refused request keeps its place in the queue for slots only if it waits for nothing else.
local function keepPlaces(first, last, refusing, reason)
  for index = first, last, 2 do
    local bucket = buckets[input[index]]
    if bucket.kind == SLOTS then
      if queues and bucket == refusing and reason == REASONS[SLOTS] then
        queueUp(bucket, input[index + 1], holder)
        bucket.refused = bucket.refused + 1
        wakeWaiters(bucket)
      elseif hasPlace(bucket, holder) and leaveQueue(bucket, holder) then
        wakeWaiters(bucket)
      end
    end
  end
end

local function refuse(first, last, leg, reason, longestWait, ownWait)
  local bucket, cost = ownOrShared(buckets[input[first + 2 * leg]]), input[first + 2 * leg + 1]
  if hasSlots then
    keepPlaces(first, last, bucket, reason)
  end
  local wait, slotted = longestWait, false
  if bucket.kind == SLOTS then
    if not (queues and reason == REASONS[SLOTS]) then
      countRefusal(bucket)
    end
  else
    local keepsPlace = returning and longestWait <= patience
    if keepsPlace and reason == REASONS[SHARE] then
      keepsPlace = longestWait <= floor(intervalOf(bucket, cost) / 2)
    end
    local whole = reason == PAUSED and closedUntil - now >= bucket.seenPause
    local most = whole and not allGiveSlots and 0 or slotBound(first, last, bucket, reason)
    local takesSlot = not keepsPlace and most > 0 and bucket.seenPause <= MAX_PAUSE_SLOTTED_US
    if takesSlot or reason == LINE then
      wait = max(longestWait, bucket.seenLine == 0 and 0 or bucket.seenLine - now)
    end
    slotted = takesSlot and wait <= most
    if reason == REASONS[SHARE] and (slotted or bucket.exists) then
      activate(bucket)
    end
    if slotted then
      -- The line moves on by its own need: another limit of this request must not close it for everybody else.
      join(bucket, cost, ownWait)
    else
      countRefusal(bucket)
    end
  end
  put(0)
  put(leg)
  -- A pause of the whole governor is nobody's in particular.
  put(reason == PAUSED and closedUntil - now >= bucket.seenPause and WHOLE_PAUSED or reason)
  put(wait)
  put(slotted and 1 or 0)
end

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
  return share and share.kind == SHARE and maxSlot > 0 and allCanReserve(first, last)
end

local function withinHorizons(first, last, start)
  for index = first, last, 2 do
    local bucket = ownOrShared(buckets[input[index]])
    if bucket.kind == RATE
      and not withinHorizon(bucket, input[index + 1] * bucket.limit.unit, max(0, start - bucket.at)) then
      return false
    end
  end
  return true
end

-- Takes the cost from a bucket. Returns the units by which a rate was moved forward, or a fencing number.
local function charge(bucket, cost, start)
  local told = 0
  if bucket.kind == RATE then
    told = commitRate(bucket, cost, start)
  elseif bucket.kind == WINDOW then
    countIn(bucket, cost, start)
  elseif bucket.kind == SLOTS then
    told = lease(bucket, cost, holder)
    return told
  else
    chargeShare(bucket, cost)
  end
  register(bucket)
  return told
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
  -- The leg with the longest line and with the longest wait; of equals one that all requests meet, since it may reserve.
  local lineLeg, line, lineAttribute = 0, -1, 0
  local waitLeg, wait, waitAttribute = 0, -1, 0
  local slotLeg, slotWaits, slotAttribute = 0, -1, 0
  local longestWait = 0
  hasSlots = false
  for leg = 0, legs - 1 do
    local bucket = ownOrShared(buckets[input[first + 2 * leg]])
    local attribute = bucket.attribute
    local legWait, paused = look(bucket, input[first + 2 * leg + 1])
    bucket.seenWait, bucket.seenPause = legWait, paused
    longestWait = max(longestWait, legWait)
    local legLine = lineAhead(bucket)
    if legLine > line or (legLine == line and lineAttribute > 0 and attribute == 0) then
      lineLeg, line, lineAttribute = leg, legLine, attribute
    end
    -- A queue for slots is joined only when nothing else is in the way.
    local before = legWait
    if bucket.kind == SLOTS then
      hasSlots = true
      before = paused
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
  local reason = binding.seenPause > 0 and PAUSED or REASONS[binding.kind]
  if line > 0 then
    local lined = ownOrShared(buckets[input[first + 2 * lineLeg]])
    refuse(first, last, lineLeg, LINE, longestWait, lined.seenWait)
  elseif wait > 0
    and (wait > maxWait or not mayReserve(first, last, binding, now + wait)) then
    local leg = waitLeg
    if reason == REASONS[RATE] and hasOwnLine(first, last, leg) then
      leg, reason = leg + 1, REASONS[SHARE]
    end
    refuse(first, last, leg, reason, longestWait, wait)
  elseif not withinHorizons(first, last, now + wait) then
    refuse(first, last, waitLeg, HORIZON, longestWait, wait)
  else
    grant(first, last, now + wait, wait)
  end
  return last + 2
end
