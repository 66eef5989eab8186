--[[
  Key overflow: values beyond a limit's maxKeys share one bucket; src/core/buckets/key-overflow.ts is the model and says why.
  Registry: sorted set, member the bucket's key, score until when it has state (µs). Reads `now`.
]]
--- @include "numbers"
--- @include "clock"
--- @include "buckets/rate/gcra"
--- @include "buckets/kinds"

-- The bucket that a request's leg meets: its own, or the one that values without share.
local function ownOrShared(bucket)
  local shared = bucket.shared
  if not shared then
    return bucket
  end
  local registry = bucket.registry
  local untilUs = bucket.registeredUntil or tonumber(redis.call('ZSCORE', registry, bucket.key)) or 0
  if untilUs > now then
    return bucket
  end
  if shared.exists and restOf(shared) > now then
    return shared
  end
  if redis.call('ZCARD', registry) < bucket.limit.maxKeys then
    return bucket
  end
  redis.call('ZREMRANGEBYSCORE', registry, '-inf', whole(now))
  return redis.call('ZCARD', registry) < bucket.limit.maxKeys and bucket or shared
end

-- Told of each change, since the next request of the same call must know.
local function register(bucket)
  if bucket.shared then
    bucket.registeredUntil = restOf(bucket)
    redis.call('ZADD', bucket.registry, whole(bucket.registeredUntil), bucket.key)
    -- It lasts as long as the bucket in it that lasts longest.
    local ms = ceil((bucket.registeredUntil - now) / 1000)
    if redis.call('PTTL', bucket.registry) < ms then
      expireAfterMs(bucket.registry, ms)
    end
  end
end
