--[[
  pause-governor: pause a whole governor until a time, or open it again. The longest pause wins. All its buckets are empty at the
  end; grants that were promised for after it are recalled by a new version of the config when it is opened early.

  KEYS[1]  config   hash, register.lua: closed (µs until when), closedAt (µs when that was written)
  ARGV[1]  for how long (µs); 0: open it
  ARGV[2]  channel that is told
  ARGV[3]  what it is told
  Reply    1 if it changed anything, else 0
  Time     the server's TIME, in microseconds
]]
local Numbers = require 'numbers'
local C = require 'constants'
local key, forUs, channel, text = KEYS[1], tonumber(ARGV[1]), ARGV[2], ARGV[3]
local nowUs = require('clock').nowUs()

local pausedUntilUs, pausedAtUs = unpack(redis.call('HMGET', key, 'closed', 'closedAt'))
pausedUntilUs = tonumber(pausedUntilUs) or 0
-- As call.lua does it: a clock that was wrong when this was written, and has been put right.
local stepUs = (tonumber(pausedAtUs) or 0) - nowUs
if stepUs > C.MAX_CLOCK_STEP_US then
  pausedUntilUs = Numbers.movedBy(pausedUntilUs, stepUs)
end
local untilUs = nowUs + math.min(forUs, C.MAX_AHEAD_US)
if (forUs > 0 and untilUs <= pausedUntilUs) or (forUs == 0 and pausedUntilUs <= nowUs) then
  return 0
end
redis.call('HSET', key, 'closed', Numbers.asText(untilUs), 'closedAt', Numbers.asText(nowUs))
if forUs == 0 then
  redis.call('HINCRBY', key, 'version', 1)
  redis.call('HSET', key, 'updatedAt', Numbers.asText(nowUs))
end
redis.pcall('PUBLISH', channel, text)
return 1
