-- The toy kind "quota"; quota.ts is the model. Hash: what state.lua has, and used.
local Pause = require 'buckets/pause'
local Fields = require 'fields'
local State = require 'buckets/state'
local REASON = require 'reasons'
local C = require 'constants'
local Call = require 'call'
local nowUs = Call.nowUs
local Quota = { reason = REASON.quota }

function Quota.load(limit, keyNumber)
  local key = KEYS[keyNumber]
  local atUs, granted, refused, closed, closedFrom, used =
    unpack(redis.call('HMGET', key, 'at', 'granted', 'refused', 'closed', 'closedFrom', 'used'))
  local bucket = {
    kind = Quota, limit = limit, key = key, exists = atUs and true or false, changed = false,
    atUs = nowUs, lineUs = 0, openUs = 0, storedLineUs = 0, current = true,
    granted = tonumber(granted) or 0, refused = tonumber(refused) or 0, storedRefused = tonumber(refused) or 0,
    pause = Pause.of(closed, closedFrom), used = tonumber(used) or 0,
    outdated = (tonumber(atUs) or 0) > nowUs,
  }
  Pause.resolve(bucket, Call.pause)
  return bucket
end

function Quota.expiresUs(bucket)
  return bucket.atUs + C.MAX_AHEAD_US
end

function Quota.remaining(bucket)
  return math.max(0, bucket.limit.max - bucket.used)
end
Quota.available = Quota.remaining

function Quota.waitUs(bucket, cost, pausedUs)
  return cost > Quota.remaining(bucket) and C.MAX_AHEAD_US or pausedUs
end

function Quota.canReserve()
  return true
end

function Quota.charge(bucket, cost)
  bucket.granted, bucket.used = bucket.granted + cost, bucket.used + cost
  bucket.exists, bucket.changed = true, true
end

function Quota.giveBack(bucket, _, cost)
  bucket.used, bucket.changed = bucket.used - cost, true
  return true
end

function Quota.settle(bucket, _, cost, actual)
  bucket.used, bucket.exists, bucket.changed = bucket.used + actual - cost, true, true
  bucket.granted = bucket.granted + math.max(0, actual - cost)
end

function Quota.effective(bucket)
  return bucket.limit.max
end

function Quota.save(bucket)
  if not bucket.changed then
    return State.saveRefusals(bucket)
  end
  Fields.set('used', bucket.used)
  State.save(bucket, Quota.expiresUs(bucket))
end

return Quota
