--[[
  The entry of a deferred job: its text in the first key, and its two times as scores. src/core/ports/deferrals.ts says what
  for.

  KEYS[1]  entries  hash: job → count, attempts made and the delay its queue was told (ms), one space between them
  KEYS[2]  since    sorted set: job by when it was first put aside (µs)
  KEYS[3]  slots    sorted set: job by its slot (µs)
]]
--- @include "numbers"

-- Returns count, attempt, delay; nothing if there is none.
local function entryOf(job)
  local text = redis.call('HGET', KEYS[1], job)
  if text then
    local count, attempt, delay = string.match(text, '^(%d+) (%d+) (%d+)$')
    return tonumber(count), tonumber(attempt), tonumber(delay)
  end
end

-- When it was first put aside.
local function sinceOf(job)
  return tonumber(redis.call('ZSCORE', KEYS[2], job))
end

local function deferral(count, since, now)
  return { whole(count), whole(since), whole(math.max(0, now - since)) }
end

local function store(job, count, attempt, since, slot, delay)
  redis.call('HSET', KEYS[1], job, whole(count) .. ' ' .. whole(attempt) .. ' ' .. whole(delay))
  redis.call('ZADD', KEYS[2], whole(since), job)
  redis.call('ZADD', KEYS[3], whole(slot), job)
end

local function drop(job)
  redis.call('HDEL', KEYS[1], job)
  redis.call('ZREM', KEYS[2], job)
  redis.call('ZREM', KEYS[3], job)
end
