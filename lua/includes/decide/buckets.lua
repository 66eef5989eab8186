--[[
  The limits and buckets of this call: each bucket is read once, brought to `now`, and written once at the end if it has
  changed; src/core/decide/views.ts is the model. Reads `input`.
]]
--- @include "buckets/kinds"
--- @include "buckets/rate/rate"
--- @include "buckets/window/window"
--- @include "buckets/concurrency/slots"
--- @include "buckets/share/share"
local buckets = {}
local loadBuckets, saveBuckets
-- Lua allows 200 locals in one function: what only this part needs stays in its block.
do
  local limits = {}

  local function readAdaptiveRule(at)
    if input[at + 1] == 0 then
      return nil
    end
    return {
      min = input[at], max = input[at + 1], gradient = input[at + 2] == 1, latencyUs = input[at + 3],
      errorPermille = input[at + 4], period = input[at + 5],
    }
  end

  -- Returns the position after the limit.
  local function readLimit(index, at)
    local kind = input[at]
    local limit = { kind = kind }
    limits[index] = limit
    if kind == RATE then
      limit.rate, limit.unit, limit.burst = input[at + 1], input[at + 2], input[at + 3]
      limit.oversize, limit.ranked = input[at + 4] == 1, input[at + 5] == 1
      limit.kept = { [0] = 0, input[at + 6], input[at + 7] }
      limit.penaltyAfter, limit.penaltyPermille, limit.penaltyFor = input[at + 8], input[at + 9], input[at + 10]
      limit.maxKeys, limit.fastest = input[at + 11], input[at + 12]
      limit.adaptive = readAdaptiveRule(at + 13)
      return at + 19
    elseif kind == WINDOW then
      limit.mode, limit.max, limit.window, limit.cells = input[at + 1], input[at + 2], input[at + 3], input[at + 4]
      limit.aligned, limit.maxKeys = input[at + 5] == 1, input[at + 6]
      return at + 7
    end
    limit.max, limit.lease = input[at + 1], input[at + 2]
    limit.adaptive = readAdaptiveRule(at + 3)
    return at + 9
  end

  local function readBucket(index, at)
    local kind, limit, key = input[at], limits[input[at + 1]], input[at + 3]
    local bucket = {
      kind = kind, limit = limit, attribute = input[at + 2], key = KEYS[key], exists = false, changed = false,
      joined = false, newlyRefused = 0,
    }
    buckets[index] = bucket
    if kind == RATE then
      loadRate(bucket, limit)
    elseif kind == WINDOW then
      bucket.entries = KEYS[key + 1]
      loadWindow(bucket, limit)
    elseif kind == SLOTS then
      bucket.leases, bucket.queue, bucket.waiting = KEYS[key + 1], KEYS[key + 2], KEYS[key + 3]
      loadSlots(bucket, limit)
    else
      bucket.whole, bucket.weight = buckets[input[at + 4]], input[at + 5]
      loadShare(bucket, KEYS[key + 1])
      return
    end
    if input[at + 4] > 0 then
      bucket.shared, bucket.registry = buckets[input[at + 4]], KEYS[input[at + 5]]
    end
  end

  -- Returns the position after the limits and buckets.
  function loadBuckets(at)
    local count = input[at]
    at = at + 1
    for index = 1, count do
      at = readLimit(index, at)
    end
    count = input[at]
    at = at + 1
    for index = 1, count do
      readBucket(index, at)
      at = at + 6
    end
    return at
  end

  function saveBuckets()
    for index = 1, #buckets do
      local bucket = buckets[index]
      if bucket.kind == RATE then
        saveRate(bucket)
      elseif bucket.kind == WINDOW then
        saveWindow(bucket)
      elseif bucket.kind == SLOTS then
        saveSlots(bucket)
      else
        saveShare(bucket)
      end
    end
    saveGroups()
  end
end
