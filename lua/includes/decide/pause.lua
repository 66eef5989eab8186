--[[
  pause and resume of single buckets; src/core/decide/pause.ts is the model. lua/pause.lua does it for the whole governor.
  Reads `input`, `words`, `now`, `eventsChannel`.
]]
--- @include "reply"
--- @include "buckets/rate/gcra"
--- @include "buckets/kinds"
--- @include "buckets/key-overflow"
--- @include "decide/buckets"
--- @include "buckets/share/share"
-- Sets until when it is closed. A share is stated as it was seen before, and as empty if it is open now.
local function closeUntil(bucket, us)
  bucket.line = bucket.open
  if bucket.kind == SHARE then
    shareWait(bucket, 1)
    bucket.debt, bucket.closed = bucket.owed, us
    if us <= now then
      shareWait(bucket, 1)
    end
    bucket.owed = max(bucket.owed, bucket.debt)
    stateShare(bucket, true)
    bucket.group.changed = true
  end
  bucket.closed = us
  bucket.exists = true
  bucket.changed = true
  register(bucket)
end

local function pause(position)
  local untilUs, text = now + min(input[position], MAX_AHEAD_US), words[input[position + 1]]
  local count = input[position + 2]
  for index = position + 3, position + 2 + count do
    local bucket = ownOrShared(buckets[input[index]])
    if bucket.kind == RATE then
      bucket.over = 0
    end
    closeUntil(bucket, max(bucket.closed, untilUs))
  end
  redis.pcall('PUBLISH', eventsChannel, text)
  put(1)
  return position + 3 + count
end

local function resume(position)
  local text, count = words[input[position]], input[position + 1]
  for index = position + 2, position + 1 + count do
    local bucket = ownOrShared(buckets[input[index]])
    if bucket.closed > now then
      if bucket.kind == RATE then
        bucket.debt = max(bucket.debt, bucket.capacity)
      end
      closeUntil(bucket, now)
    end
  end
  redis.pcall('PUBLISH', eventsChannel, text)
  put(1)
  return position + 2 + count
end
