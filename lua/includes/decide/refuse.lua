--[[
  What a refusal leaves behind: a turn in the line of the bucket that refused, a place in the queue for slots, or only its
  counter moved; src/core/decide/refuse.ts is the model and says why.
]]
local View = require 'decide/view'
local Line = require 'buckets/line'
local Call = require 'call'
local Ask = require 'ask'
local REASON = require 'reasons'
local put = require('reply').put
local nowUs, met, costs, register = Call.nowUs, View.buckets, View.costs, View.register
local max, min = math.max, math.min

-- How far ahead a turn may lie; 0: none is given.
local function turnBoundUs(count, bucket, reason)
  -- A pause may be ended early: what it put into a line would stand there still.
  if reason == REASON.paused then
    return 0
  elseif bucket.attribute > 0 or Ask.allGiveTurns then
    return Ask.maxTurnUs
  -- All requests meet this limit. One that could reserve there waits for that; one that could not has a near turn instead.
  elseif bucket.kind.reserves and View.allCanReserve(count) then
    return reason == REASON.line and Ask.maxTurnUs or 0
  end
  return min(Ask.maxTurnUs, Ask.maxWaitUs)
end

-- The line moves on by its own need: another limit of this request must not close it for everybody else.
local function join(bucket, cost)
  local kind, turnUs = bucket.kind, max(nowUs + bucket.seenWaitUs, bucket.seenLineUs)
  Line.join(bucket, kind.lineAfterUs(bucket, cost, turnUs))
  if kind.restate then
    kind.restate(bucket)
  elseif not bucket.current then
    bucket.changed = true
  end
  if kind.refused then
    kind.refused(bucket, true)
  end
  register(bucket)
end

local function countRefusal(bucket)
  local kind = bucket.kind
  local isPunished = kind.refused and kind.refused(bucket, false)
  if not isPunished then
    if not bucket.exists then
      return
    elseif bucket.outdated then
      bucket.changed, bucket.outdated, bucket.lineUs = true, false, bucket.openUs
      if kind.restate then
        kind.restate(bucket, true)
      end
    end
  end
  bucket.refused = bucket.refused + 1
  register(bucket)
end

return function(count, refusing, reason)
  local bucket, cost = met[refusing], costs[refusing]
  local kind, isOwnReason = bucket.kind, reason == bucket.kind.reason
  local longestWaitUs, hasTurn = 0, false
  for index = 1, count do
    local other = met[index]
    longestWaitUs = max(longestWaitUs, other.seenWaitUs)
    if other.kind.keepPlace then
      other.kind.keepPlace(other, costs[index], isOwnReason and other == bucket)
    end
  end
  local waitUs = longestWaitUs
  if not kind.lineAfterUs then
    if not (kind.hasQueue and Ask.queues and isOwnReason) then
      countRefusal(bucket)
    end
  else
    local patienceUs = Ask.patienceUs
    if isOwnReason and kind.patienceUs then
      patienceUs = min(patienceUs, kind.patienceUs(bucket, cost))
    end
    local mostUs = turnBoundUs(count, bucket, reason)
    local takesTurn = mostUs > 0 and not (Ask.returning and longestWaitUs <= patienceUs)
    -- A returning request does not mind the line while there is room, but a new turn is at its end.
    if (takesTurn or reason == REASON.line) and bucket.seenLineUs > 0 then
      waitUs = max(longestWaitUs, bucket.seenLineUs - nowUs)
    end
    hasTurn = takesTurn and waitUs <= mostUs
    if kind.contends and (hasTurn or bucket.exists) then
      kind.contends(bucket, isOwnReason)
    end
    if hasTurn then
      join(bucket, cost)
    else
      countRefusal(bucket)
    end
  end
  -- A pause of the whole governor is nobody's in particular, whichever of its limits says so.
  local isGovernorPause = reason == REASON.paused and Call.pause and Call.pause.untilUs - nowUs >= bucket.seenPausedUs
  put(0)
  put(refusing - 1)
  put(isGovernorPause and REASON.governorPaused or reason)
  put(waitUs)
  put(hasTurn and 1 or 0)
end
