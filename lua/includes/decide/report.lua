--[[
  report: tells adaptive limits what calls came to; src/core/decide/give-back.ts is the model. Reads `input`, `now`.
]]
--- @include "reply"
--- @include "buckets/rate/gcra"
--- @include "buckets/adaptive"
--- @include "buckets/kinds"
--- @include "buckets/key-overflow"
--- @include "decide/buckets"
--- @include "buckets/concurrency/slots"
--- @include "buckets/concurrency/queue"
local function report(position)
  local started, calls, throttled = input[position], input[position + 1], input[position + 2]
  local failed, latencySum = input[position + 3], input[position + 4]
  local count = input[position + 5]
  for index = position + 6, position + 5 + count do
    local bucket = ownOrShared(buckets[input[index]])
    adaptiveObserve(bucket.adaptive, bucket.limit.adaptive, started, calls, throttled, failed, latencySum)
    bucket.exists = true
    bucket.changed = true
    if bucket.kind == RATE then
      local rate = bucket.adaptive.value
      if bucket.limit.penaltyAfter > 0 and bucket.penalty > now then
        rate = penalised(bucket.limit, rate)
      end
      repace(bucket, min(bucket.rate, rate))
      bucket.line = bucket.open
      bucket.described = false
      register(bucket)
    else
      followAdaptive(bucket)
      wakeWaiters(bucket)
    end
  end
  put(1)
  return position + 6 + count
end
