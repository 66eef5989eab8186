--[[
  How a limit comes back after a pause; src/core/buckets/ramp.ts is the model and says why. `over` is when the pause ends or ended; 0:
  there was none.
]]
--- @include "buckets/rate/gcra"
local RAMP_US = 1000000

local function isRamping(us, over)
  return over > 0 and us < over + RAMP_US
end

-- A time on the slower clock, but for a constant.
local function slowed(us, over)
  local since = us - over
  if since <= 0 or over == 0 then
    return us
  elseif since >= RAMP_US then
    return us - RAMP_US / 2
  end
  return over + floor((since * since) / (2 * RAMP_US))
end

-- Microseconds of the whole rate that the time between is worth.
local function worth(from, to, over)
  return slowed(to, over) - slowed(from, over)
end

local function ceilSqrt(square)
  local root = ceil(math.sqrt(square))
  while (root - 1) * (root - 1) >= square do
    root = root - 1
  end
  while root * root < square do
    root = root + 1
  end
  return root
end

-- The first microsecond by which the time from `from` on is worth `us` of the whole rate.
local function whenWorth(us, from, over)
  if us <= 0 then
    return from
  elseif over == 0 then
    return from + us
  end
  local since = slowed(from, over) + us - over
  if since <= 0 then
    return over + since
  elseif since >= RAMP_US / 2 then
    return over + since + RAMP_US / 2
  end
  return over + ceilSqrt(2 * RAMP_US * since)
end

local function slotsInRamp(slots, us, over)
  if not isRamping(us, over) then
    return slots
  end
  return us < over and 0 or max(1, floor((slots * (us - over)) / RAMP_US))
end

-- The first microsecond at which there are so many slots, as far as the ramp is concerned.
local function whenSlots(needed, slots, over)
  return over + ceil((needed * RAMP_US) / slots)
end
