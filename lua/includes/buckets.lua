--[[
  The buckets of this call: each is read once, brought to `now`, and written once at the end if it has changed.

  A bucket without state is full, or empty at `coldAt`, which may lie ahead. A missing field has its default, so that a
  state written by another version of this script, or by hand, is no error. Reads `input`, `now`, `coldAt`, `version`.
]]
--- @include "numbers"
--- @include "clock"
--- @include "gcra"
--- @include "line"
local buckets = {}

local function loadBucket(key, rate, unit, burst, attribute)
  local stored = redis.call('HMGET', key, 'debt', 'at', 'line', 'granted', 'refused', 'rate', 'unit', 'version')
  local exists = false
  for field = 1, 7 do
    exists = exists or stored[field] ~= false
  end
  local cold = not exists and coldAt > 0
  local line = tonumber(stored[3]) or 0
  local bucket = {
    key = key, rate = rate, unit = unit, capacity = burst * unit, attribute = attribute,
    exists = exists, changed = false, joined = false, hadLine = line > 0, newlyRefused = 0,
    debt = tonumber(stored[1]) or (cold and min(MAX_DEBT, burst * unit + max(0, coldAt - now) * rate) or 0),
    at = tonumber(stored[2]) or (cold and min(coldAt, now) or now),
    line = line, open = 0, granted = tonumber(stored[4]) or 0, refused = tonumber(stored[5]) or 0,
  }
  local storedRate, storedUnit = tonumber(stored[6]) or rate, tonumber(stored[7]) or unit
  local storedAt, fullAt = bucket.at, bucket.at + ceil(bucket.debt / storedRate)
  drain(bucket, storedRate, storedUnit)
  openLine(bucket, fullAt)
  bucket.described = tonumber(stored[6]) == rate and tonumber(stored[7]) == unit and tonumber(stored[8]) == version
  -- Whether the state as stored says the same as here. Else a place in the line has to be written with all of it.
  bucket.current = exists and storedAt <= bucket.at and storedRate == rate and storedUnit == unit
  return bucket
end

-- Returns the position after the limits.
local function loadBuckets(position)
  local count = input[position]
  position = position + 1
  for index = 1, count do
    buckets[index] = loadBucket(
      KEYS[index + 1], input[position], input[position + 1], input[position + 2], input[position + 3]
    )
    position = position + 4
  end
  return position
end

local function saveBucket(bucket)
  local key = bucket.key
  redis.call('HSET', key, 'debt', whole(bucket.debt), 'at', whole(bucket.at), 'granted', whole(bucket.granted))
  if not bucket.described then
    redis.call('HSET', key, 'rate', whole(bucket.rate), 'unit', whole(bucket.unit), 'version', whole(version))
  end
  if bucket.line > 0 then
    redis.call('HSET', key, 'line', whole(bucket.line))
  elseif bucket.hadLine then
    redis.call('HDEL', key, 'line')
  end
  if bucket.refused > 0 then
    redis.call('HSET', key, 'refused', whole(bucket.refused))
  end
  -- A full bucket is the same as none once its line is forgotten; the state carries its own times, this is clean-up.
  local fullAt = bucket.at + ceil(bucket.debt / bucket.rate)
  expireAfterMs(key, ceil((fullAt - now) / 1000) + LINE_GRACE_US / 1000)
end

local function saveBuckets()
  for index = 1, #buckets do
    local bucket = buckets[index]
    if bucket.changed or (bucket.joined and not bucket.current) then
      saveBucket(bucket)
    elseif bucket.joined then
      -- Debt and time stay: a bucket is full since it was, not since its last refusal, or its line is never forgotten.
      redis.call('HSET', bucket.key, 'line', whole(bucket.line), 'refused', whole(bucket.refused))
    elseif bucket.newlyRefused > 0 then
      redis.call('HINCRBY', bucket.key, 'refused', bucket.newlyRefused)
    end
  end
end
