--[[
  note-deferral: a job is put aside, once more or for the first time.

  KEYS      entries, since, slots: lua/includes/deferrals.lua
  ARGV[1]   job
  ARGV[2]   delay until its slot, as its queue is told (ms)
  ARGV[3]   attempts that it has made
  ARGV[4]   1: it was never put aside before, and what is stored under its id is another's
  ARGV[5]   count and
  ARGV[6]   since (µs) of what was forgotten when it started, if that start does not count; 0, 0: nothing
  ARGV[7]   1: it is excused, so that neither it counts nor the time until its slot
  Reply     { count, since (µs), age (µs) }, as text
  Time      the server's TIME, in microseconds
]]
--- @include "clock"
--- @include "deferrals"
--- @include "kept-deferrals"
local job, delay, attempt = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local fresh, count, since, excused = ARGV[4] == '1', tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7] == '1'
local now = nowUs()

dropLost(now)
if count == 0 then
  since = now
  local stored, storedAttempt = entryOf(job)
  -- Under another number of attempts, the job has run since and nobody could say so.
  if stored and not fresh and storedAttempt == attempt then
    count, since = stored, sinceOf(job) or now
  end
end
if excused then
  since = since + delay * 1000
else
  count = count + 1
end
store(job, count, attempt, since, now + delay * 1000, delay)
expireAfterSlots(now)
return deferral(count, since, now)
