--[[
  The entry of a deferred job: its text in the first key, and its two times as scores. src/core/ports/deferrals.ts says what
  for. An entry is kept for a day after its turn: a job that is not back by then was removed.

  KEYS[1]  entries  hash: job → count, attempts made and the delay its queue was told (ms), one space between them
  KEYS[2]  since    sorted set: job by when it was first deferred (µs)
  KEYS[3]  turns    sorted set: job by its turn (µs)
]]
local asText = require('numbers').asText
local Deferrals = {}
local KEPT_US = 86400000000

-- Returns count, attempt, delay; nothing if there is none.
function Deferrals.entryOf(job)
  local text = redis.call('HGET', KEYS[1], job)
  if text then
    local count, attempt, delay = string.match(text, '^(%d+) (%d+) (%d+)$')
    return tonumber(count), tonumber(attempt), tonumber(delay)
  end
end

-- When it was first deferred.
function Deferrals.sinceOf(job)
  return tonumber(redis.call('ZSCORE', KEYS[2], job))
end

function Deferrals.reply(count, sinceUs, nowUs)
  return { asText(count), asText(sinceUs), asText(math.max(0, nowUs - sinceUs)) }
end

function Deferrals.store(job, count, attempt, sinceUs, turnUs, delay)
  redis.call('HSET', KEYS[1], job, asText(count) .. ' ' .. asText(attempt) .. ' ' .. asText(delay))
  redis.call('ZADD', KEYS[2], asText(sinceUs), job)
  redis.call('ZADD', KEYS[3], asText(turnUs), job)
end

function Deferrals.drop(job)
  redis.call('HDEL', KEYS[1], job)
  redis.call('ZREM', KEYS[2], job)
  redis.call('ZREM', KEYS[3], job)
end

-- After the last turn, so that no entry goes before its job is back.
function Deferrals.expireAfterTurns(nowUs)
  local last = redis.call('ZRANGE', KEYS[3], -1, -1, 'WITHSCORES')
  if last[2] then
    local ms = math.ceil((math.max(0, tonumber(last[2]) - nowUs) + KEPT_US) / 1000)
    for key = 1, 3 do
      require('clock').expireAfterMs(KEYS[key], ms)
    end
  end
end

-- A few each time, so that no call pays for many.
function Deferrals.dropLost(nowUs)
  local lost = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', asText(nowUs - KEPT_US), 'LIMIT', 0, 10)
  for index = 1, #lost do
    Deferrals.drop(lost[index])
  end
end

return Deferrals
