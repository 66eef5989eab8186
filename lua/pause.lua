--[[
  pause: close a whole governor until a time, or open it again. The longest pause wins. All its buckets are empty at the
  end; grants that were promised for after it are recalled by a new version of the config when it is opened early.

  KEYS[1]  config   hash, register.lua: closed (µs until when), closedAt (µs when that was written)
  ARGV[1]  for how long (µs); 0: open it
  ARGV[2]  channel that is told
  ARGV[3]  what it is told
  Reply    1 if it changed anything, else 0
  Time     the server's TIME, in microseconds
]]
--- @include "numbers"
--- @include "clock"
local key, forUs, channel, text = KEYS[1], tonumber(ARGV[1]), ARGV[2], ARGV[3]
local now = nowUs()
local MAX_AHEAD_US, MAX_CLOCK_STEP_US = 315360000000000, 1000000

local stored = redis.call('HMGET', key, 'closed', 'closedAt')
local closed = tonumber(stored[1]) or 0
-- As decide.lua does it: a clock that was wrong when this was written, and has been put right.
local step = (tonumber(stored[2]) or 0) - now
if closed > 0 and step > MAX_CLOCK_STEP_US then
  closed = math.max(0, closed - step)
end
local untilUs = forUs > 0 and now + math.min(forUs, MAX_AHEAD_US) or now
if (forUs > 0 and untilUs <= closed) or (forUs == 0 and closed <= now) then
  return 0
end
redis.call('HSET', key, 'closed', whole(untilUs), 'closedAt', whole(now))
if forUs == 0 then
  redis.call('HINCRBY', key, 'version', 1)
  redis.call('HSET', key, 'updatedAt', whole(now))
end
redis.pcall('PUBLISH', channel, text)
return 1
