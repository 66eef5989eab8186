--[[
  What stays the same during one run of decide: what the caller asks, the moment, and the pause of the whole governor.
]]
local Numbers = require 'numbers'
local C = require 'constants'

local version, created, coldAtUs, pausedUntilUs, pausedAtUs, changedAtUs = unpack(redis.call('HMGET', KEYS[1],
  'version', 'created', 'coldAt', 'closed', 'closedAt', 'updatedAt'))
local input, words = cjson.decode(ARGV[1]), cjson.decode(ARGV[2])
if tonumber(version) ~= input[1] or tonumber(created) ~= input[2] then
  return { isCurrent = false }
end

local nowUs = require('clock').nowUs()
coldAtUs, pausedUntilUs = tonumber(coldAtUs) or 0, tonumber(pausedUntilUs) or 0
pausedAtUs, changedAtUs = tonumber(pausedAtUs) or 0, tonumber(changedAtUs) or 0

-- A clock was wrong when it wrote one of these times, and has been put right. Without this, all would stand still until then.
local function rewrite(...)
  redis.call('HSET', KEYS[1], ...)
end
if coldAtUs - nowUs > C.MAX_COLD_AHEAD_US then
  coldAtUs = nowUs
  rewrite('coldAt', Numbers.asText(nowUs))
end
if changedAtUs - nowUs > C.MAX_CLOCK_STEP_US then
  changedAtUs = nowUs
  rewrite('updatedAt', Numbers.asText(nowUs))
end
if pausedAtUs - nowUs > C.MAX_CLOCK_STEP_US then
  pausedUntilUs = Numbers.movedBy(pausedUntilUs, pausedAtUs - nowUs)
  rewrite('closed', Numbers.asText(pausedUntilUs), 'closedAt', Numbers.asText(nowUs))
end

return {
  isCurrent = true,
  input = input, words = words,
  wakePrefix = words[1], eventsChannel = words[2], instance = words[3], countsListeners = words[4] == '1',
  version = input[1], nowUs = nowUs,
  coldAtUs = coldAtUs,           -- when all buckets without state were empty; 0: they are full
  changedAtUs = changedAtUs,     -- when the limits last changed
  pausedUntilUs = pausedUntilUs, -- when the pause of the whole governor ends or ended; 0: there was none
}
