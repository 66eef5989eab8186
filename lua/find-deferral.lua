--[[
  find-deferral: what is noted of a deferred job.

  KEYS      entries, since, slots: lua/includes/deferrals.lua
  ARGV[1]   job
  ARGV[2]   attempts that it has made: an entry under another number is of before its last run
  Reply     { count, since (µs), age (µs) }, as text; {} if there is none
  Time      the server's TIME, in microseconds
]]
--- @include "clock"
--- @include "deferrals"
local now = nowUs()
local count, attempt = entryOf(ARGV[1])
if count and attempt == tonumber(ARGV[2]) then
  return deferral(count, sinceOf(ARGV[1]) or now, now)
end
return {}
