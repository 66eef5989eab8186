--[[
  register: agree with the store on the limits in force. A governor calls it when it starts, and again whenever it is
  told that its config is not the one in force.

  KEYS[1]  config  hash without TTL: version (+1 a change), created (µs, when the governor was first written), coldAt
                   (µs at which all buckets without state were empty; 0: they are full), updatedAt (µs at
                   which the version last went up), updatedBy, limits (JSON, code's), operator (JSON, an operator's, which win
                   over code's; '': none since a reset; absent: none ever), revision (the highest that code brought; 0: none)
  KEYS[2]  history list without TTL, newest first, of at most 100 changes: JSON { version, atUs, who, what }
  ARGV[1]  limits  JSON: code's as the caller knew them, or its own if it has just started
  ARGV[2]  the operator's limits as the caller knew them; '': none
  ARGV[3]  revision of ARGV[1]; 0: none
  ARGV[4]  version the caller knew last; 0: none
  ARGV[5]  created the caller knew last (µs); 0: the caller has just started
  ARGV[6]  1: a governor that is written for the first time starts with empty buckets
  ARGV[7]  µs of the server's clock until which the caller holds grants that it was given ahead; 0: none
  ARGV[8]  'version created' of the config that the caller has seen and means to replace; '': none
  ARGV[9]  µs in which buckets fill under that one; '': unknown
  ARGV[10] who the caller is
  ARGV[11] the change it makes, for the history: JSON { who, what }
  ARGV[12] channel that is told of changes
  Reply    { outcome, version, created, limits, operator, revision, who }, all as text. Outcome 0: these are in force.
           1: the caller's limits win over these: call again and say what was seen, so that the history can tell
           what became what
  Time     the server's TIME, in microseconds

  Absent   It is written. If the caller knew it before, the store has lost its data. Buckets then are empty until what was
           promised before the loss has started: until the caller's own last start, and for a second in any case, since
           other processes hold grants too (as long as that by default). So nothing is granted twice.
  Present  A caller that has just started brings its limits: the higher revision wins, and of equals (or if there are none)
           the latest start. One without a revision never replaces one with a revision. One that was running takes over
           what is there, so that two versions of a program side by side do not change it to and fro.
]]
local Config = require 'configuration'
local asText = require('numbers').asText
local C = require 'constants'
local limits, operator, revision = ARGV[1], ARGV[2], tonumber(ARGV[3])
local knownVersion, knownCreated = tonumber(ARGV[4]), tonumber(ARGV[5])
local startsEmpty, promised = ARGV[6] == '1', tonumber(ARGV[7])
local seen, fillingUs, who, change, channel = ARGV[8], tonumber(ARGV[9]), ARGV[10], ARGV[11], ARGV[12]
local nowUs = require('clock').nowUs()
local HELD_BY_OTHERS_US = 1000000

-- Until when buckets are empty if the store lost its data before `writtenAt`.
local function coldAfterLoss(writtenAt)
  return math.min(math.max(writtenAt + HELD_BY_OTHERS_US, promised), nowUs + C.MAX_COLD_AHEAD_US)
end

if not Config.isThere then
  local lost = knownCreated > 0
  redis.call('HDEL', KEYS[1], 'operator')
  Config.version, Config.created, Config.limits, Config.revision = knownVersion, nowUs, limits, revision
  Config.operator = operator ~= '' and operator or nil
  Config.coldAt = lost and coldAfterLoss(nowUs) or startsEmpty and nowUs or 0
  Config.write(nowUs, lost and change, who, channel)
  return Config.replyAs('0')
end

if knownCreated == 0 then
  if revision < Config.revision or (revision == Config.revision and limits == Config.limits) then
    return Config.replyAs('0')
  end
  if seen ~= Config.stamp() then
    return Config.replyAs('1')
  end
  Config.forgetEmpty(nowUs, fillingUs)
  Config.limits, Config.revision = limits, revision
  Config.write(nowUs, change, who, channel)
  return Config.replyAs('0')
end

if knownCreated ~= Config.created then
  -- Another caller wrote it anew after the loss, who could not know what this one holds, or that there was a loss.
  if Config.coldAt < coldAfterLoss(Config.created) then
    Config.coldAt = coldAfterLoss(Config.created)
    redis.call('HSET', KEYS[1], 'coldAt', asText(Config.coldAt))
  end
  -- Nor what an operator had set, nor which revision was there: unless somebody who knew more has spoken since.
  local putsBackOperator = operator ~= '' and not Config.operator
  if knownVersion >= Config.version and (putsBackOperator or revision > Config.revision) then
    if putsBackOperator then
      Config.operator = operator
    end
    if revision > Config.revision then
      Config.limits, Config.revision = limits, revision
    end
    Config.version = math.max(Config.version, knownVersion)
    Config.write(nowUs, change, who, channel)
  end
end
return Config.replyAs('0')
