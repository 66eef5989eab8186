--[[
  deferrals/list: deferred jobs of a queue in order of their turns, a page at a time.

  KEYS      entries, since, turns: lua/includes/deferrals.lua
  ARGV[1]   µs: only turns after it
  ARGV[2]   how many; and all that share the turn of the last, so that a page never ends between two of them
  Reply     job, turn (µs), delay that its queue was told (ms), attempts it had made, of each, one after the other, as text
]]
local Deferrals = require 'deferrals'
local asText = require('numbers').asText
local from = '(' .. ARGV[1]
local page = redis.call('ZRANGEBYSCORE', KEYS[3], from, '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[2])
if #page > 0 then
  page = redis.call('ZRANGEBYSCORE', KEYS[3], from, page[#page], 'WITHSCORES')
end
local listed = {}
for index = 1, #page, 2 do
  local count, attempt, delay = Deferrals.entryOf(page[index])
  if count then
    listed[#listed + 1] = page[index]
    listed[#listed + 1] = asText(tonumber(page[index + 1]))
    listed[#listed + 1] = asText(delay)
    listed[#listed + 1] = asText(attempt)
  end
end
return listed
