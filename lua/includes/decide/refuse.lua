--[[
  What a refusal leaves behind: a place in the line of the bucket that refused, a place in the queue for slots, or only its
  counter moved; src/core/decide/refuse.ts is the model and says why. Reads `input`, `now`, `closedUntil`.
]]
--- @include "reply"
--- @include "buckets/rate/gcra"
--- @include "buckets/ramp"
--- @include "buckets/rate/debt"
--- @include "buckets/line"
--- @include "buckets/kinds"
--- @include "buckets/key-overflow"
--- @include "decide/buckets"
--- @include "buckets/rate/rate"
--- @include "buckets/share/share"
--- @include "buckets/concurrency/queue-places"
--- @include "buckets/concurrency/queue"
--- @include "decide/terms"
local LINE, HORIZON, PAUSED, WHOLE_PAUSED = 1, 2, 6, 7
local REASONS = { [RATE] = 0, [WINDOW] = 3, [SLOTS] = 4, [SHARE] = 5 }
local canReserve, allCanReserve, refuse
-- Lua allows 200 locals in one function: what only this part needs stays in its block.
do
  -- Whether grants from this bucket are made ahead at all.
  function canReserve(bucket)
    if bucket.kind == RATE then
      local follows = not bucket.limit.adaptive and (not bucket.limit.ranked or priority == 0)
      return follows and emptyOf(bucket) <= now
    end
    return bucket.kind ~= SLOTS
  end

  function allCanReserve(first, last)
    for index = first, last, 2 do
      if not canReserve(ownOrShared(buckets[input[index]])) then
        return false
      end
    end
    return true
  end

  -- How far ahead a slot may lie; 0: none is given.
  local function turnBound(first, last, bucket, reason)
    -- A pause may be ended early: what it put into a line would stand there still.
    if reason == PAUSED then
      return 0
    elseif bucket.attribute > 0 or allGiveTurns then
      return maxTurn
    elseif bucket.kind == RATE and allCanReserve(first, last) then
      return reason == LINE and maxTurn or 0
    end
    return min(maxTurn, maxWait)
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
      local behind = whenWorth(intervalOf(bucket, cost), slot, rampEndOf(bucket, emptyOf(bucket)))
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

  local function countRefusal(bucket)
    if bucket.kind == RATE and emptyOf(bucket) <= now and overLimit(bucket) then
      bucket.refused = bucket.refused + 1
      register(bucket)
    elseif bucket.exists then
      -- Else what was taken over now would be taken over again and again.
      if bucket.outdated then
        bucket.changed = true
        bucket.line = bucket.open
        bucket.outdated = false
        if bucket.kind == SHARE then
          stateShare(bucket, true)
        end
      end
      bucket.refused = bucket.refused + 1
      bucket.newlyRefused = bucket.newlyRefused + 1
      register(bucket)
    elseif bucket.kind == RATE then
      bucket.over = 0 -- without state nothing is remembered
    end
  end

  function refuse(first, last, leg, reason, longestWait, ownWait, hasSlots)
    local bucket, cost = ownOrShared(buckets[input[first + 2 * leg]]), input[first + 2 * leg + 1]
    if hasSlots then
      keepPlaces(first, last, bucket, reason)
    end
    local wait, hasTurn = longestWait, false
    -- A pause of the whole governor is nobody's in particular, whichever of its limits says so.
    local isWhole = reason == PAUSED and closedUntil - now >= bucket.seenPause
    if bucket.kind == SLOTS then
      if not (queues and reason == REASONS[SLOTS]) then
        countRefusal(bucket)
      end
    else
      local keepsPlace = returning and longestWait <= patience
      if keepsPlace and reason == REASONS[SHARE] then
        keepsPlace = longestWait <= floor(intervalOf(bucket, cost) / 2)
      end
      local most = turnBound(first, last, bucket, reason)
      local takesTurn = not keepsPlace and most > 0
      if takesTurn or reason == LINE then
        wait = max(longestWait, bucket.seenLine == 0 and 0 or bucket.seenLine - now)
      end
      hasTurn = takesTurn and wait <= most
      if bucket.kind == SHARE and (hasTurn or bucket.exists) then
        bucket.group.changed = true
        if reason == REASONS[SHARE] then
          activate(bucket)
        end
      end
      if hasTurn then
        -- The line moves on by its own need: another limit of this request must not close it for everybody else.
        join(bucket, cost, ownWait)
      else
        countRefusal(bucket)
      end
    end
    put(0)
    put(leg)
    put(isWhole and WHOLE_PAUSED or reason)
    put(wait)
    put(hasTurn and 1 or 0)
  end
end
