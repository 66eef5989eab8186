--[[
  list-deferrals: deferred jobs of a queue in order of their slots, a page at a time.

  KEYS      entries, since, slots: lua/includes/deferrals.lua
  ARGV[1]   µs: only slots after it
  ARGV[2]   how many; and whoever shares the slot of the last, so that a page never ends between two of them
  Reply     job, slot (µs), delay that its queue was told (ms), attempts it had made, of each, one after the other, as text
]]
--- @include "numbers"
--- @include "deferrals"
local from = '(' .. ARGV[1]
local page = redis.call('ZRANGEBYSCORE', KEYS[3], from, '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[2])
if #page > 0 then
  page = redis.call('ZRANGEBYSCORE', KEYS[3], from, page[#page], 'WITHSCORES')
end
local listed = {}
for index = 1, #page, 2 do
  local count, attempt, delay = entryOf(page[index])
  if count then
    listed[#listed + 1] = page[index]
    listed[#listed + 1] = whole(tonumber(page[index + 1]))
    listed[#listed + 1] = whole(delay)
    listed[#listed + 1] = whole(attempt)
  end
end
return listed
