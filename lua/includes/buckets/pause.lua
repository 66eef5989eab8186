--[[
  Pauses, and how a limit comes back after one; src/core/buckets/pause.ts is the model and says why. `endUs` is when the pause
  ends or ended; 0: there was none.
]]
local Pause = {}
local C = require 'constants'
local governorPausedUntilUs = require('call').pausedUntilUs
local ceil, floor, max, sqrt = math.ceil, math.floor, math.max, math.sqrt

-- Settles when the pause of a bucket or of its governor ends, whichever is later. An adaptive limit has no ramp.
function Pause.resolve(bucket)
  local endUs = max(bucket.pausedUntilUs, governorPausedUntilUs)
  bucket.pauseEndUs = endUs
  bucket.rampEndUs = bucket.limit.adaptive and 0 or endUs
end

local function isRamping(us, endUs)
  return endUs > 0 and us < endUs + C.RAMP_US
end
Pause.isRamping = isRamping

-- A time on the slower clock, but for a constant.
local function rampedUs(us, endUs)
  local since = us - endUs
  if since <= 0 or endUs == 0 then
    return us
  elseif since >= C.RAMP_US then
    return us - C.RAMP_US / 2
  end
  return endUs + floor((since * since) / (2 * C.RAMP_US))
end

-- Microseconds of the whole rate that the time between is worth.
function Pause.rampedElapsedUs(fromUs, toUs, endUs)
  if endUs == 0 then
    return toUs - fromUs
  end
  return rampedUs(toUs, endUs) - rampedUs(fromUs, endUs)
end

local function ceilSqrt(square)
  local root = ceil(sqrt(square))
  while (root - 1) * (root - 1) >= square do
    root = root - 1
  end
  while root * root < square do
    root = root + 1
  end
  return root
end

-- The first microsecond by which the time since `fromUs` is worth `us` of the whole rate.
function Pause.rampedDeadlineUs(us, fromUs, endUs)
  if us <= 0 then
    return fromUs
  elseif endUs == 0 then
    return fromUs + us
  end
  local since = rampedUs(fromUs, endUs) + us - endUs
  if since <= 0 then
    return endUs + since
  elseif since >= C.RAMP_US / 2 then
    return endUs + since + C.RAMP_US / 2
  end
  return endUs + ceilSqrt(2 * C.RAMP_US * since)
end

function Pause.slotsInRamp(slots, us, endUs)
  if not isRamping(us, endUs) then
    return slots
  end
  return us < endUs and 0 or max(1, floor((slots * (us - endUs)) / C.RAMP_US))
end

-- The first microsecond at which there are so many slots, as far as the ramp is concerned.
function Pause.slotsReturnUs(needed, slots, endUs)
  return endUs + ceil((needed * C.RAMP_US) / slots)
end

return Pause
