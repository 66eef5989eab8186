--[[
  deferrals/move: deferred jobs get new turns. Those that are no longer deferred are left out.

  KEYS      entries, since, turns: lua/includes/deferrals.lua
  ARGV[1]   number of jobs
  ARGV[2…]  for each: job, delay until its new turn, as its queue was told (ms)
  Reply     number of jobs that were moved, as text
  Time      the server's TIME, in microseconds
]]
local Deferrals = require 'deferrals'
local asText = require('numbers').asText
local nowUs = require('clock').nowUs()
local moved = 0
for index = 2, 2 * tonumber(ARGV[1]), 2 do
  local job, delay = ARGV[index], tonumber(ARGV[index + 1])
  local count, attempt = Deferrals.entryOf(job)
  if count then
    Deferrals.store(job, count, attempt, Deferrals.sinceOf(job) or nowUs, nowUs + delay * 1000, delay)
    moved = moved + 1
  end
end
Deferrals.expireAfterTurns(nowUs)
return asText(moved)
