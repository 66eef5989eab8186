--[[
  The entries of a window with mode log; src/core/buckets/window/window.ts is the model and says why. Sorted set: score the running total
  after the entry, member total:µs.

  Loading writes nothing, and so a bucket may differ from its sorted set until it changes: `step` is how far a clock was put
  back since (µs); `converted` says that none of the entries counts any more, but one for all at `lone` (µs), if there is one.
]]
--- @include "numbers"
--- @include "buckets/rate/gcra"

local function entryTime(bucket, member)
  return max(0, tonumber(string.match(member, ':(%d+)$')) - (bucket.step or 0))
end

-- Writes what loading has only reckoned with: entries of a clock that was put right, counts of another window.
local function takeOverEntries(bucket)
  if bucket.converted then
    redis.call('DEL', bucket.entries)
    if bucket.lone and bucket.total > bucket.base then
      redis.call('ZADD', bucket.entries, whole(bucket.total), whole(bucket.total) .. ':' .. whole(bucket.lone))
    end
  elseif bucket.step then
    local entries = redis.call('ZRANGE', bucket.entries, 0, -1, 'WITHSCORES')
    redis.call('DEL', bucket.entries)
    for index = 1, #entries, 2 do
      local us = entryTime(bucket, entries[index])
      redis.call('ZADD', bucket.entries, entries[index + 1], entries[index + 1] .. ':' .. whole(us))
    end
  end
  bucket.converted, bucket.lone, bucket.step = nil, nil, nil
end

-- What has left the window counts no more; it is removed when the bucket is written.
local function evictEntries(bucket)
  local before, from = bucket.at - bucket.limit.window, 0
  if bucket.converted then
    bucket.base = bucket.lone and bucket.lone <= before and bucket.total or bucket.base
    return
  end
  while true do
    local entries = redis.call('ZRANGE', bucket.entries, from, from + 63, 'WITHSCORES')
    for index = 1, #entries, 2 do
      if entryTime(bucket, entries[index]) > before then
        return
      end
      bucket.base = tonumber(entries[index + 1])
    end
    if #entries < 128 then
      return
    end
    from = from + 64
  end
end

local function addEntry(bucket, us, cost)
  takeOverEntries(bucket)
  bucket.total = bucket.total + cost
  bucket.last = us
  redis.call('ZADD', bucket.entries, whole(bucket.total), whole(bucket.total) .. ':' .. whole(us))
end

-- From the bucket's own time until so many tokens have left it.
local function logWait(bucket, over)
  if bucket.lone then
    return bucket.lone + bucket.limit.window - bucket.at
  end
  local freeing = redis.call('ZRANGEBYSCORE', bucket.entries, whole(bucket.base + over), '+inf', 'LIMIT', 0, 1)[1]
  return freeing and entryTime(bucket, freeing) + bucket.limit.window - bucket.at or bucket.limit.window
end
