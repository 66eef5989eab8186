--[[
  The stored configuration, as register and configure change it. The texts of the limits are never read here: numbers in
  them may be larger than Lua's JSON keeps, and what they mean is the callers' to agree on.
]]
local asText = require('numbers').asText
local C = require 'constants'
local Config = {}
local MAX_HISTORY = 100
local FIELDS = { 'version', 'created', 'coldAt', 'limits', 'operator', 'revision', 'updatedBy', 'closed' }

for index, text in ipairs(redis.call('HMGET', KEYS[1], unpack(FIELDS))) do
  Config[FIELDS[index]] = text
end
Config.version, Config.created = tonumber(Config.version), tonumber(Config.created)
Config.coldAt, Config.revision = tonumber(Config.coldAt) or 0, tonumber(Config.revision) or 0
Config.closed = tonumber(Config.closed) or 0
Config.isThere = Config.version and Config.created and Config.limits

-- What tells whether the config is still the one that a caller saw.
function Config.stamp()
  return Config.isThere and asText(Config.version) .. ' ' .. asText(Config.created) or ''
end

function Config.replyAs(outcome)
  return {
    outcome, asText(Config.version), asText(Config.created), Config.limits, Config.operator or '', asText(Config.revision),
    Config.updatedBy or '',
  }
end

-- Once all buckets without state have filled since `coldAt`, or since a pause of the governor and its ramp, under the limits so
-- far, slower limits must not find them empty again. `fillingUs`: the time it takes them; nil: nobody can tell.
function Config.forgetEmpty(nowUs, fillingUs)
  if Config.closed > 0 and fillingUs and Config.closed + C.RAMP_US + fillingUs <= nowUs then
    redis.call('HDEL', KEYS[1], 'closed', 'closedFrom', 'closedAt')
  end
  if Config.coldAt > 0 and fillingUs and Config.coldAt + fillingUs <= nowUs then
    Config.coldAt = 0
  end
end

-- Writes the config under the next version, and says so. `change`: JSON of an entry in the history, without its version
-- and time; none if `isThere` is not true, since there was nothing to change.
function Config.write(nowUs, change, who, channel)
  Config.version = Config.version + 1
  redis.call(
    'HSET', KEYS[1], 'version', asText(Config.version), 'created', asText(Config.created),
    'coldAt', asText(Config.coldAt), 'updatedAt', asText(nowUs), 'updatedBy', who,
    'revision', asText(Config.revision), 'limits', Config.limits
  )
  if Config.operator then
    redis.call('HSET', KEYS[1], 'operator', Config.operator)
  end
  Config.updatedBy = who
  if change then
    local entry = '{"version":' .. asText(Config.version) .. ',"atUs":' .. asText(nowUs) .. ',' .. string.sub(change, 2)
    redis.call('LPUSH', KEYS[2], entry)
    redis.call('LTRIM', KEYS[2], 0, MAX_HISTORY - 1)
  end
  -- Who may not publish here may still configure: what nobody is told of is seen at the next decision.
  redis.pcall('PUBLISH', channel, 'config ' .. asText(Config.version))
end

return Config
