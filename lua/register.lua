--[[
  register: agree with the store on the limits in force. A governor calls it when it starts, and again whenever a
  decide tells it that its config is not the one in force.

  KEYS[1]  config  hash without TTL: version (+1 a change), created (µs, when the governor was first written), coldAt
                   (µs at which all buckets without state were empty; 0: they are full), updatedAt (µs), limits (JSON)
  ARGV[1]  limits  JSON: those in force as the caller knew them, or its own if it has just started
  ARGV[2]  version the caller knew last; 0: none
  ARGV[3]  created the caller knew last (µs); 0: the caller has just started
  ARGV[4]  1: a governor that is written for the first time starts with empty buckets
  ARGV[5]  µs of the server's clock until which the caller holds grants that it was given ahead; 0: none
  Reply    { version, created, limits } in force, as text
  Time     the server's TIME, in microseconds

  Absent   It is written. If the caller knew it before, the store has lost its data. Buckets then are empty until what was
           promised before the loss has started: until the caller's own last start, and for a second in any case, since
           other processes hold grants too (as long as that by default). So nothing is granted twice.
  Present  A caller that has just started brings its limits: the latest start wins. One that was running takes over
           what is there, so that two versions of a program side by side do not change it to and fro.
]]
--- @include "numbers"
--- @include "clock"
local key, limits = KEYS[1], ARGV[1]
local knownVersion, knownCreated = tonumber(ARGV[2]), tonumber(ARGV[3])
local startsEmpty, promised = ARGV[4] == '1', tonumber(ARGV[5])
local now = nowUs()
local HELD_BY_OTHERS_US, MAX_COLD_AHEAD_US = 1000000, 60000000

local stored = redis.call('HMGET', key, 'version', 'created', 'coldAt', 'limits')
local version, created = tonumber(stored[1]), tonumber(stored[2])
local coldAt = tonumber(stored[3]) or 0

-- Until when buckets are empty if the store lost its data before `writtenAt`.
local function coldAfterLoss(writtenAt)
  return math.min(math.max(writtenAt + HELD_BY_OTHERS_US, promised), now + MAX_COLD_AHEAD_US)
end

local function write(text)
  redis.call(
    'HSET', key, 'version', whole(version), 'created', whole(created), 'coldAt', whole(coldAt),
    'updatedAt', whole(now), 'limits', text
  )
  return { whole(version), whole(created), text }
end

-- Whether all buckets without state have filled since `coldAt`, under the limits so far: if they have, slower limits
-- must not find them empty again. Limits that can't be read say nothing, and are replaced.
local function filled(text)
  local readable, known = pcall(cjson.decode, text)
  if not readable or type(known) ~= 'table' then
    return false
  end
  for _, limit in ipairs(known) do
    local of = type(limit) == 'table' and limit or {}
    local burst, unit, rate = tonumber(of.burst), tonumber(of.periodUs), tonumber(of.rate)
    if not (burst and unit and rate) or coldAt + math.ceil(burst * unit / rate) > now then
      return false
    end
  end
  return true
end

if not (version and created and stored[4]) then
  version, created = knownVersion + 1, now
  coldAt = knownCreated > 0 and coldAfterLoss(now) or startsEmpty and now or 0
  return write(limits)
end

if knownCreated == 0 then
  if stored[4] == limits then
    return { whole(version), whole(created), limits }
  end
  version = version + 1
  if coldAt > 0 and filled(stored[4]) then
    coldAt = 0
  end
  return write(limits)
end

-- Another caller wrote it anew after the loss, who could not know what this one holds, or that there was a loss.
if knownCreated ~= created and coldAt < coldAfterLoss(created) then
  redis.call('HSET', key, 'coldAt', whole(coldAfterLoss(created)))
end
return { whole(version), whole(created), stored[4] }
