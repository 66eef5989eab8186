--[[
  What the hashes of all kinds of buckets have alike.
]]
--- @include "numbers"

-- A field that is not there is 0. `had`: whether it may be there.
local function setOrDelete(key, field, value, had)
  if value > 0 then
    redis.call('HSET', key, field, whole(value))
  elseif had then
    redis.call('HDEL', key, field)
  end
end

-- Writes what is left of requests that were all refused: a place in the line, or the counter alone.
local function saveRefusals(bucket)
  if bucket.joined then
    redis.call('HSET', bucket.key, 'line', whole(bucket.line), 'refused', whole(bucket.refused))
  elseif bucket.newlyRefused > 0 then
    redis.call('HINCRBY', bucket.key, 'refused', bucket.newlyRefused)
  end
end
