--[[
  pause-governor: pause a whole governor until a time, or open it again. The longest pause wins. All its buckets are empty at the
  end; grants that were promised for after it are recalled by a new version of the config when it is opened early.

  KEYS[1]  config   hash, register.lua: closed, closedFrom (µs until and since when), closedAt (µs when that was written)
  ARGV[1]  for how long (µs); 0: open it
  ARGV[2]  channel that is told
  ARGV[3]  what it is told
  Reply    1 if it changed anything, else 0
  Time     the server's TIME, in microseconds
]]
local asText = require('numbers').asText
local Pause = require 'buckets/pause'
local C = require 'constants'
local key, forUs, channel, text = KEYS[1], tonumber(ARGV[1]), ARGV[2], ARGV[3]
local nowUs = require('clock').nowUs()

local closed, closedFrom, pausedAtUs = unpack(redis.call('HMGET', key, 'closed', 'closedFrom', 'closedAt'))
local before = Pause.of(closed, closedFrom)
-- As call.lua does it: a clock that was wrong when this was written, and has been put right.
local stepUs = (tonumber(pausedAtUs) or 0) - nowUs
if stepUs > C.MAX_CLOCK_STEP_US then
  before = Pause.moved(before, stepUs)
end
local untilUs = nowUs + math.min(forUs, C.MAX_AHEAD_US)
local endsUs = before and before.untilUs or 0
if (forUs > 0 and untilUs <= endsUs) or (forUs == 0 and endsUs <= nowUs) then
  return 0
end
local fromUs = Pause.longer(before, nowUs, untilUs).fromUs
redis.call('HSET', key, 'closed', asText(untilUs), 'closedFrom', asText(fromUs), 'closedAt', asText(nowUs))
if forUs == 0 then
  redis.call('HINCRBY', key, 'version', 1)
  redis.call('HSET', key, 'updatedAt', asText(nowUs))
end
redis.pcall('PUBLISH', channel, text)
return 1
