--[[
  deferrals/find: what is noted of a deferred job.

  KEYS      entries, since, turns: lua/includes/deferrals.lua
  ARGV[1]   job
  ARGV[2]   attempts that it has made: an entry under another number is of before its last run
  Reply     { count, since (µs), age (µs) }, as text; {} if there is none
  Time      the server's TIME, in microseconds
]]
local Deferrals = require 'deferrals'
local nowUs = require('clock').nowUs()
local count, attempt = Deferrals.entryOf(ARGV[1])
if count and attempt == tonumber(ARGV[2]) then
  return Deferrals.reply(count, Deferrals.sinceOf(ARGV[1]) or nowUs, nowUs)
end
return {}
