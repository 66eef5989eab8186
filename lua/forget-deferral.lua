--[[
  forget-deferral: a job is not put aside any more.

  KEYS      entries, since, slots: lua/includes/deferrals.lua
  ARGV[1]   job
  Reply     what was noted, as find-deferral has it; {} if nothing was
  Time      the server's TIME, in microseconds
]]
--- @include "clock"
--- @include "deferrals"
local now = nowUs()
local count = entryOf(ARGV[1])
if not count then
  return {}
end
local since = sinceOf(ARGV[1]) or now
drop(ARGV[1])
return deferral(count, since, now)
