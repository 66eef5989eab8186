--[[
  move-deferrals: jobs that are put aside get new slots. Those that are not any more are left out.

  KEYS      entries, since, slots: lua/includes/deferrals.lua
  ARGV[1]   number of jobs
  ARGV[2…]  for each: job, delay until its new slot, as its queue was told (ms)
  Reply     number of jobs that were moved, as text
  Time      the server's TIME, in microseconds
]]
--- @include "numbers"
--- @include "clock"
--- @include "deferrals"
--- @include "kept-deferrals"
local now = nowUs()
local moved = 0
for index = 2, 2 * tonumber(ARGV[1]), 2 do
  local job, delay = ARGV[index], tonumber(ARGV[index + 1])
  local count, attempt = entryOf(job)
  if count then
    store(job, count, attempt, sinceOf(job) or now, now + delay * 1000, delay)
    moved = moved + 1
  end
end
expireAfterSlots(now)
return whole(moved)
