--[[
  What stays the same during one run of decide: what the caller asks, the moment, and the pause of the whole governor.
]]
local asText = require('numbers').asText
local Pause = require 'buckets/pause'
local C = require 'constants'

local version, created, coldAtUs, closed, closedFrom, pausedAtUs, changedAtUs = unpack(redis.call('HMGET', KEYS[1],
  'version', 'created', 'coldAt', 'closed', 'closedFrom', 'closedAt', 'updatedAt'))
local input, words = cjson.decode(ARGV[1]), cjson.decode(ARGV[2])
if tonumber(version) ~= input[1] or tonumber(created) ~= input[2] then
  return { isCurrent = false }
end

local nowUs = require('clock').nowUs()
local pause = Pause.of(closed, closedFrom)
coldAtUs, pausedAtUs, changedAtUs = tonumber(coldAtUs) or 0, tonumber(pausedAtUs) or 0, tonumber(changedAtUs) or 0

-- A clock was wrong when it wrote one of these times, and has been put right. Without this, all would stand still until then.
local function rewrite(...)
  redis.call('HSET', KEYS[1], ...)
end
if coldAtUs - nowUs > C.MAX_COLD_AHEAD_US then
  coldAtUs = nowUs
  rewrite('coldAt', asText(nowUs))
end
if changedAtUs - nowUs > C.MAX_CLOCK_STEP_US then
  changedAtUs = nowUs
  rewrite('updatedAt', asText(nowUs))
end
if pause and pausedAtUs - nowUs > C.MAX_CLOCK_STEP_US then
  pause = Pause.moved(pause, pausedAtUs - nowUs)
  rewrite('closed', asText(pause.untilUs), 'closedFrom', asText(pause.fromUs), 'closedAt', asText(nowUs))
end

return {
  isCurrent = true,
  input = input, words = words,
  wakePrefix = words[1], eventsChannel = words[2], instance = words[3], countsListeners = words[4] == '1',
  version = input[1], nowUs = nowUs,
  coldAtUs = coldAtUs,           -- when all buckets without state were empty; 0: they are full
  changedAtUs = changedAtUs,     -- when the limits last changed
  pause = pause,                 -- the last of the whole governor; nil: there was none
}
