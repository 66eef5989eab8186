--[[
  deferrals/note: a job is deferred, once more or for the first time.

  KEYS      entries, since, turns: lua/includes/deferrals.lua
  ARGV[1]   job
  ARGV[2]   delay until its turn, as its queue is told (ms)
  ARGV[3]   attempts that it has made
  ARGV[4]   1: it was never deferred before, and what is stored under its id is another's
  ARGV[5]   count and
  ARGV[6]   since (µs) of what was forgotten when it started, if that start does not count; 0, 0: nothing
  ARGV[7]   1: it is excused, so that neither it counts nor the time until its turn
  Reply     { count, since (µs), age (µs) }, as text
  Time      the server's TIME, in microseconds
]]
local Deferrals = require 'deferrals'
local job, delay, attempt = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local fresh, count, sinceUs, excused = ARGV[4] == '1', tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7] == '1'
local nowUs = require('clock').nowUs()

Deferrals.dropLost(nowUs)
if count == 0 then
  sinceUs = nowUs
  local stored, storedAttempt = Deferrals.entryOf(job)
  -- Under another number of attempts, the job has run since and nobody could say so.
  if stored and not fresh and storedAttempt == attempt then
    count, sinceUs = stored, Deferrals.sinceOf(job) or nowUs
  end
end
if excused then
  sinceUs = sinceUs + delay * 1000
else
  count = count + 1
end
Deferrals.store(job, count, attempt, sinceUs, nowUs + delay * 1000, delay)
Deferrals.expireAfterTurns(nowUs)
return Deferrals.reply(count, sinceUs, nowUs)
