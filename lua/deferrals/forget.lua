--[[
  deferrals/forget: a job is no longer deferred.

  KEYS      entries, since, turns: lua/includes/deferrals.lua
  ARGV[1]   job
  Reply     what was noted, as deferrals/find has it; {} if nothing was
  Time      the server's TIME, in microseconds
]]
local Deferrals = require 'deferrals'
local nowUs = require('clock').nowUs()
local count = Deferrals.entryOf(ARGV[1])
if not count then
  return {}
end
local sinceUs = Deferrals.sinceOf(ARGV[1]) or nowUs
Deferrals.drop(ARGV[1])
return Deferrals.reply(count, sinceUs, nowUs)
