--[[
  Key overflow: values beyond a limit's maxKeys share one bucket; src/core/buckets/key-overflow.ts is the model and says why.
  Registry: sorted set, member the bucket's key, score until when it has state (µs).
]]
local Clock = require 'clock'
local asText = require('numbers').asText
local nowUs = require('call').nowUs
local KeyOverflow = {}

-- The bucket that a value meets: its own, or the one that values without their own share.
function KeyOverflow.bucketFor(bucket)
  local shared, registry = bucket.shared, bucket.registry
  local untilUs = bucket.registeredUntilUs or tonumber(redis.call('ZSCORE', registry, bucket.key)) or 0
  if untilUs > nowUs then
    return bucket
  end
  if shared.exists and shared.kind.expiresUs(shared) > nowUs then
    return shared
  end
  if redis.call('ZCARD', registry) < bucket.limit.maxKeys then
    return bucket
  end
  redis.call('ZREMRANGEBYSCORE', registry, '-inf', asText(nowUs))
  return redis.call('ZCARD', registry) < bucket.limit.maxKeys and bucket or shared
end

-- Told of each change, since the next request of the same call must know.
function KeyOverflow.register(bucket)
  bucket.registeredUntilUs = bucket.kind.expiresUs(bucket)
  redis.call('ZADD', bucket.registry, asText(bucket.registeredUntilUs), bucket.key)
  -- It lasts as long as the bucket in it that lasts longest.
  local ms = math.ceil((bucket.registeredUntilUs - nowUs) / 1000)
  if redis.call('PTTL', bucket.registry) < ms then
    Clock.expireAfterMs(bucket.registry, ms)
  end
end

return KeyOverflow
