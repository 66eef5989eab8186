--[[
  deferrals/oldest: how many jobs of a queue are deferred, and the one deferred for longest.

  KEYS      entries, since, turns: lua/includes/deferrals.lua
  Reply     { count, age (µs), job }, as text; { 0 } if there is none
  Time      the server's TIME, in microseconds
]]
local asText = require('numbers').asText
local nowUs = require('clock').nowUs()
local first = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
if not first[1] then
  return { asText(0) }
end
return { asText(redis.call('ZCARD', KEYS[2])), asText(math.max(0, nowUs - tonumber(first[2]))), first[1] }
