--[[
  How long entries of deferred jobs are kept: a day after their slot. A job that is not back by then was removed.
]]
--- @include "numbers"
--- @include "clock"
--- @include "deferrals"
local KEPT_US = 86400000000

-- After the last slot, so that no entry goes before its job is back.
local function expireAfterSlots(now)
  local last = redis.call('ZRANGE', KEYS[3], -1, -1, 'WITHSCORES')
  if last[2] then
    local ms = math.ceil((math.max(0, tonumber(last[2]) - now) + KEPT_US) / 1000)
    for key = 1, 3 do
      expireAfterMs(KEYS[key], ms)
    end
  end
end

-- A few each time, so that no call pays for many.
local function dropLost(now)
  local lost = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', whole(now - KEPT_US), 'LIMIT', 0, 10)
  for index = 1, #lost do
    drop(lost[index])
  end
end
