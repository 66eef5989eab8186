--[[
  configure: set the operator's limits, if the config is still the one that the caller saw.

  KEYS[1]  config  as register.lua has it
  KEYS[2]  history as register.lua has it
  ARGV[1]  'version created' that the caller saw
  ARGV[2]  all of the operator's limits, JSON; '': none from now on
  ARGV[3]  µs in which buckets fill under the limits so far; '': unknown
  ARGV[4]  who the caller is
  ARGV[5]  the change, for the history: JSON { who, what }
  ARGV[6]  channel that is told of changes
  Reply    as register's. Outcome 0: done, and these are in force. 1: nothing was written, since these are in force now and
           the caller saw others. A list of one, { '1' }: nothing was written, and there is no config
  Time     the server's TIME, in microseconds
]]
local Config = require 'configuration'
local seen, operator, fillingUs = ARGV[1], ARGV[2], tonumber(ARGV[3])
local who, change, channel = ARGV[4], ARGV[5], ARGV[6]

if seen ~= Config.stamp() then
  return Config.isThere and Config.replyAs('1') or { '1' }
end
local nowUs = require('clock').nowUs()
Config.forgetEmpty(nowUs, fillingUs)
Config.operator = operator
Config.write(nowUs, change, who, channel)
return Config.replyAs('0')
