--[[
  The one clock of all callers, and the expiry that goes by it. The parity tests replace this part, to set the time and to
  keep state for as long as they like; no argument of the script that ships does either.
]]
local asText = require('numbers').asText

-- Called once a script: before Redis 7.2 a second TIME may differ. The parts are numbers before they are joined, since
-- the microseconds come without leading zeros.
local function nowUs()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

local function expireAfterMs(key, ms)
  redis.call('PEXPIRE', key, asText(ms))
end

return { nowUs = nowUs, expireAfterMs = expireAfterMs }
