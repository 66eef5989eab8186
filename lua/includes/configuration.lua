--[[
  The stored configuration, as register and configure change it. The texts of the limits are never read here: numbers in
  them may be larger than Lua's JSON keeps, and what they mean is the callers' to agree on.
]]
--- @include "numbers"
local MAX_HISTORY = 100
local RAMP_US = 1000000
local FIELDS = { 'version', 'created', 'coldAt', 'limits', 'operator', 'revision', 'updatedBy', 'closed' }

local config = {}
for index, text in ipairs(redis.call('HMGET', KEYS[1], unpack(FIELDS))) do
  config[FIELDS[index]] = text
end
config.version, config.created = tonumber(config.version), tonumber(config.created)
config.coldAt, config.revision = tonumber(config.coldAt) or 0, tonumber(config.revision) or 0
config.closed = tonumber(config.closed) or 0
local isThere = config.version and config.created and config.limits

-- What tells whether the config is still the one that a caller saw.
local function stamp()
  return isThere and whole(config.version) .. ' ' .. whole(config.created) or ''
end

local function replyAs(outcome)
  return {
    outcome, whole(config.version), whole(config.created), config.limits, config.operator or '', whole(config.revision),
    config.updatedBy or '',
  }
end

-- Once all buckets without state have filled since `coldAt`, or since a pause of the governor and its ramp, under the limits so
-- far, slower limits must not find them empty again. `fillingUs`: the time it takes them; nil: nobody can tell.
local function forgetEmpty(now, fillingUs)
  if config.closed > 0 and fillingUs and config.closed + RAMP_US + fillingUs <= now then
    redis.call('HDEL', KEYS[1], 'closed', 'closedAt')
  end
  if config.coldAt > 0 and fillingUs and config.coldAt + fillingUs <= now then
    config.coldAt = 0
  end
end

-- Writes the config under the next version, and says so. `change`: JSON of an entry in the history, without its version
-- and time; none if `isThere` is not true, since there was nothing to change.
local function write(now, change, who, channel)
  config.version = config.version + 1
  redis.call(
    'HSET', KEYS[1], 'version', whole(config.version), 'created', whole(config.created),
    'coldAt', whole(config.coldAt), 'updatedAt', whole(now), 'updatedBy', who,
    'revision', whole(config.revision), 'limits', config.limits
  )
  if config.operator then
    redis.call('HSET', KEYS[1], 'operator', config.operator)
  end
  config.updatedBy = who
  if change then
    local entry = '{"version":' .. whole(config.version) .. ',"atUs":' .. whole(now) .. ',' .. string.sub(change, 2)
    redis.call('LPUSH', KEYS[2], entry)
    redis.call('LTRIM', KEYS[2], 0, MAX_HISTORY - 1)
  end
  -- Who may not publish here may still configure: what nobody is told of is seen at the next decision.
  redis.pcall('PUBLISH', channel, 'config ' .. whole(config.version))
end
