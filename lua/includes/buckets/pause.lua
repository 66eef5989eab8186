--[[
  Pauses, { fromUs, untilUs } or nil, and how work comes back after one; src/core/buckets/pause.ts is the model and says why.
]]
local Pause = {}
local C = require 'constants'
local movedBy = require('numbers').movedBy
local ceil, floor, max, min = math.ceil, math.floor, math.max, math.min

-- From the fields `closed` and `closedFrom`. An older version wrote no beginning: then it is taken for a long one.
function Pause.of(closed, closedFrom)
  local untilUs = tonumber(closed)
  return untilUs and { fromUs = tonumber(closedFrom) or untilUs - C.RAMP_US, untilUs = untilUs }
end

-- As it is after the clock that wrote it was put back.
function Pause.moved(pause, stepUs)
  return pause and { fromUs = movedBy(pause.fromUs, stepUs), untilUs = movedBy(pause.untilUs, stepUs) }
end

-- How long work takes to come back in full.
function Pause.rampUs(pause)
  return max(0, min(C.RAMP_US, pause.untilUs - pause.fromUs))
end

-- Settles which pause of a bucket, its own or its governor's, ends later.
function Pause.resolve(bucket, governorPause)
  local own, pause = bucket.pause, governorPause
  if own and not (pause and pause.untilUs > own.untilUs) then
    pause = own
  end
  bucket.laterPause, bucket.pauseEndUs = pause, pause and pause.untilUs or 0
end

-- How much of `whole` (slots, tokens of a window) is there at `us`.
function Pause.opened(whole, pause, us)
  if not pause then
    return whole
  end
  local rampUs = Pause.rampUs(pause)
  if us >= pause.untilUs + rampUs then
    return whole
  elseif us < pause.untilUs then
    return 0
  end
  return max(1, floor((whole * floor(((us - pause.untilUs) * 1000) / rampUs)) / 1000))
end

-- The first microsecond at which so much of it is there.
function Pause.whenOpened(needed, whole, pause)
  if needed <= 1 then
    return pause.untilUs
  end
  return pause.untilUs + ceil((ceil((needed * 1000) / whole) * Pause.rampUs(pause)) / 1000)
end

-- The pause after somebody pauses until then: the longest wins.
function Pause.longer(before, nowUs, untilUs)
  if not before or before.untilUs <= nowUs then
    return { fromUs = nowUs, untilUs = untilUs }
  end
  return { fromUs = before.fromUs, untilUs = max(before.untilUs, untilUs) }
end

return Pause
