--[[
  oldest-deferral: how many jobs of a queue are put aside, and the one that has been for longest.

  KEYS      entries, since, slots: lua/includes/deferrals.lua
  Reply     { count, age (µs), job }, as text; { 0 } if there is none
  Time      the server's TIME, in microseconds
]]
--- @include "numbers"
--- @include "clock"
local now = nowUs()
local first = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
if not first[1] then
  return { whole(0) }
end
return { whole(redis.call('ZCARD', KEYS[2])), whole(math.max(0, now - tonumber(first[2]))), first[1] }
