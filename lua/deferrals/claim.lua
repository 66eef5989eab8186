--[[
  deferrals/claim: one process of all re-times the deferred jobs of a queue after a change of the limits.

  KEYS[1]  retimed  string: the version of the limits that the queue was, or is being, re-timed for
  ARGV[1]  version
  ARGV[2]  how long the claim holds (ms)
  ARGV[3]  1: it is the caller's already, and is prolonged
  Reply    '1'; '0' if another has claimed it, or a later version
]]
local held, version = tonumber(redis.call('GET', KEYS[1])), tonumber(ARGV[1])
if held and (held > version or (held == version and ARGV[3] == '0')) then
  return '0'
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return '1'
