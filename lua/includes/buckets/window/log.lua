--[[
  The entries of a window with mode log; src/core/buckets/window/log.ts is the model and says why. Sorted set: score the running
  total after the entry, member total:µs.

  Loading writes nothing, and so a bucket may differ from its sorted set until it changes: `stepUs` is how far a clock was put
  back since; `converted` says that none of the entries counts any more, but one for all at `loneUs`, if there is one.
]]
local asText = require('numbers').asText
local Log = {}
local max = math.max

local function entryUs(bucket, member)
  return max(0, tonumber(string.match(member, ':(%d+)$')) - (bucket.stepUs or 0))
end

local function write(bucket, totalAfter, us)
  redis.call('ZADD', bucket.entries, asText(totalAfter), asText(totalAfter) .. ':' .. asText(us))
end

-- Writes what loading has only reckoned with: entries of a clock that was put right, counts of another window.
function Log.takeOver(bucket)
  if bucket.converted then
    redis.call('DEL', bucket.entries)
    if bucket.loneUs and bucket.total > bucket.base then
      write(bucket, bucket.total, bucket.loneUs)
    end
  elseif bucket.stepUs then
    local entries = redis.call('ZRANGE', bucket.entries, 0, -1, 'WITHSCORES')
    redis.call('DEL', bucket.entries)
    for index = 1, #entries, 2 do
      write(bucket, tonumber(entries[index + 1]), entryUs(bucket, entries[index]))
    end
  end
  bucket.converted, bucket.loneUs, bucket.stepUs = nil, nil, nil
end

-- What has left the window counts no more; it is removed when the bucket is written.
function Log.evict(bucket)
  local beforeUs, from = bucket.atUs - bucket.limit.windowUs, 0
  if bucket.converted then
    bucket.base = bucket.loneUs and bucket.loneUs <= beforeUs and bucket.total or bucket.base
    return
  end
  repeat
    local entries = redis.call('ZRANGE', bucket.entries, from, from + 63, 'WITHSCORES')
    for index = 1, #entries, 2 do
      if entryUs(bucket, entries[index]) > beforeUs then
        return
      end
      bucket.base = tonumber(entries[index + 1])
    end
    from = from + 64
  until #entries < 128
end

function Log.add(bucket, us, cost)
  Log.takeOver(bucket)
  bucket.total = bucket.total + cost
  bucket.lastUs = us
  write(bucket, bucket.total, us)
end

-- From the bucket's own time until so many tokens have left it.
function Log.waitUs(bucket, excess)
  local windowUs = bucket.limit.windowUs
  if bucket.loneUs then
    return bucket.loneUs + windowUs - bucket.atUs
  end
  local freeing = redis.call('ZRANGEBYSCORE', bucket.entries, asText(bucket.base + excess), '+inf', 'LIMIT', 0, 1)[1]
  return freeing and entryUs(bucket, freeing) + windowUs - bucket.atUs or windowUs
end

return Log
