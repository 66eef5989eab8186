--[[
  The kind "rate": read, brought to now, charged, written; src/core/buckets/rate/index.ts is the model. A missing field has its
  default, so that a state written by another version of this script, or by hand, is no error.

  Hash: debt (units), at, line, granted, refused, last (latest start promised), closed, closedFrom (its pause), rate (units a µs),
  unit (units a token), burst, version: the terms it was written under; over (has refused since), penalty (until), adaptive (text),
  promised (units that start later than a second ahead). Times in µs.
]]
local Debt = require 'buckets/rate/debt'
local Drain = require 'buckets/rate/drain'
local Line = require 'buckets/line'
local Pause = require 'buckets/pause'
local Fields = require 'fields'
local State = require 'buckets/state'
local C = require 'constants'
local Call = require 'call'
local Ask = require 'ask'
local put = require('reply').put
local REASON = require 'reasons'
local Rate = { reason = REASON.rate, reserves = true }
local nowUs, coldAtUs, governorPause, version = Call.nowUs, Call.coldAtUs, Call.pause, Call.version
local debtWaitUs = Debt.waitUs
local ceil, floor, max, min = math.ceil, math.floor, math.max, math.min

-- The microsecond from which the state says nothing more than none does, for a bucket that is full at `fullUs`.
local function expiresAfter(bucket, fullUs)
  local us = max(fullUs, bucket.penaltyUntilUs)
  if bucket.adaptive then
    us = max(us, bucket.atUs + C.ADAPTIVE_KEPT_US)
  end
  return us + C.LINE_GRACE_US
end

function Rate.expiresUs(bucket)
  return bucket.changed and expiresAfter(bucket, Debt.fullAtUs(bucket)) or bucket.storedExpiresUs
end

function Rate.load(limit, keyNumber)
  local key = KEYS[keyNumber]
  local debt, atUs, lineUs, granted, refused, lastUs, closed, closedFrom, rate, periodUs, burst,
    storedVersion, refusingSinceUs, penaltyUntilUs, adaptive, promised, oldRamp = unpack(redis.call('HMGET', key,
    'debt', 'at', 'line', 'granted', 'refused', 'last', 'closed', 'closedFrom', 'rate', 'unit', 'burst',
    'version', 'over', 'penalty', 'adaptive', 'promised', 'ramp'))
  local exists = (debt or atUs or lineUs or granted or refused or lastUs or closed or rate) and true or false
  -- Without state it was full before a pause that is over: draining empties it then.
  local fullAtUs = governorPause and governorPause.untilUs <= nowUs and governorPause.untilUs or nowUs
  local coldUs = exists and 0 or coldAtUs
  local aheadUs = max(0, coldUs - nowUs)
  local describes = periodUs and burst and storedVersion and rate
  local bucket = {
    kind = Rate, limit = limit, key = key, exists = exists, changed = false,
    debt = tonumber(debt) or (coldUs > 0 and min(C.MAX_DEBT_UNITS, limit.burst * limit.periodUs + aheadUs * limit.rate) or 0),
    atUs = tonumber(atUs) or (coldUs > 0 and coldUs - aheadUs) or (exists and nowUs or fullAtUs),
    lineUs = tonumber(lineUs) or 0, granted = tonumber(granted) or 0, refused = tonumber(refused) or 0,
    lastUs = tonumber(lastUs) or 0, pause = Pause.of(closed, closedFrom),
    rate = tonumber(rate) or limit.rate, periodUs = tonumber(periodUs) or limit.periodUs,
    refusingSinceUs = tonumber(refusingSinceUs) or 0, penaltyUntilUs = tonumber(penaltyUntilUs) or 0,
    promised = tonumber(promised) or 0, oldRamp = tonumber(oldRamp) or 0,
    capacity = limit.burst * limit.periodUs, pauseEndUs = 0, openUs = 0,
    storedRate = nil, storedLineUs = 0, storedRefused = 0, storedRefusingSinceUs = 0, storedPromised = 0,
    storedExpiresUs = 0, hadAdaptive = adaptive ~= false, adaptive = nil, sameTerms = false, outdated = false, current = false,
    attribute = 0, seenWaitUs = 0, seenPausedUs = 0, seenLineUs = 0, seenAheadUs = 0, seenEarlyUs = 0,
  }
  burst, storedVersion = tonumber(burst) or limit.burst, tonumber(storedVersion) or version
  if limit.adaptive and not exists then
    bucket.adaptive = require('buckets/adaptive').begun(limit.adaptive, limit.rate)
  elseif adaptive then
    bucket.adaptive = require('buckets/adaptive').fromText(adaptive)
  end
  -- An older version wrote it in a ramp in which it drained more slowly: what it promised there has less debt before it than it
  -- takes to drain now. This is for while both versions run; no ramp is written any more.
  if bucket.oldRamp > 0 and bucket.lastUs > bucket.atUs then
    bucket.debt = min(C.MAX_DEBT_UNITS, bucket.debt + (bucket.rate * C.RAMP_US) / 2)
  end
  Pause.resolve(bucket, governorPause)
  local storedAtUs, storedPauseEndUs = bucket.atUs, bucket.pauseEndUs
  bucket.storedRate, bucket.storedLineUs, bucket.storedRefused = bucket.rate, bucket.lineUs, bucket.refused
  bucket.storedRefusingSinceUs, bucket.storedPromised = bucket.refusingSinceUs, bucket.promised
  bucket.sameTerms = bucket.periodUs == limit.periodUs and burst == limit.burst and storedVersion == version
  local fullSinceUs = Debt.fullAtUs(bucket, governorPause)
  bucket.storedExpiresUs = expiresAfter(bucket, governorPause and Debt.fullAtUs(bucket) or fullSinceUs)
  Drain.toNow(bucket, limit, burst, storedVersion)
  local isFull = bucket.debt == 0 and bucket.pauseEndUs <= bucket.atUs
  Line.open(bucket, isFull, fullSinceUs)
  if isFull and bucket.atUs - fullSinceUs >= min(C.LINE_GRACE_US, ceil(limit.periodUs / (2 * bucket.rate))) then
    bucket.refusingSinceUs = 0
  end
  if bucket.pauseEndUs > bucket.refusingSinceUs then
    bucket.refusingSinceUs = 0
  end
  bucket.outdated = storedAtUs > bucket.atUs or storedVersion ~= version
  bucket.current = exists and storedAtUs <= bucket.atUs and bucket.sameTerms and storedPauseEndUs <= storedAtUs
    and (bucket.storedRate == bucket.rate or limit.adaptive ~= nil)
  bucket.sameTerms = bucket.sameTerms and describes
  return bucket
end

function Rate.waitUs(bucket, cost)
  local waitUs = debtWaitUs(bucket, cost, Ask.priority)
  return waitUs > 0 and bucket.atUs - nowUs + waitUs or 0
end

-- A request of high priority passes the line where priorities mean something.
function Rate.passesLine(bucket)
  return bucket.limit.kept and Ask.priority == 0
end

-- Where the line ends once this cost has joined it.
function Rate.lineAfterUs(bucket, cost, fromUs)
  return fromUs + ceil((cost * bucket.limit.periodUs) / bucket.rate)
end

-- Whether grants from this bucket are made ahead at all.
function Rate.canReserve(bucket)
  local limit = bucket.limit
  return not limit.adaptive and (not limit.kept or Ask.priority == 0) and bucket.pauseEndUs <= nowUs
end

function Rate.staysExact(bucket, cost, startUs)
  local units, aheadUs = cost * bucket.limit.periodUs, max(0, startUs - bucket.atUs)
  return bucket.debt + units <= C.MAX_DEBT_UNITS and aheadUs <= floor((C.MAX_DEBT_UNITS - units) / bucket.rate)
end

-- Returns the units by which the bucket was moved forward to the start.
function Rate.charge(bucket, cost, startUs)
  local atUs, units = bucket.atUs, cost * bucket.limit.periodUs
  local aheadUs, pushed = startUs > atUs and startUs - atUs or 0, 0
  if aheadUs > 0 then
    pushed = max(0, aheadUs * bucket.rate - bucket.debt)
    bucket.lastUs = max(bucket.lastUs, atUs + aheadUs)
    if aheadUs > C.RECALL_US and cost <= bucket.limit.burst then
      bucket.promised = bucket.promised + pushed + units
    end
  end
  bucket.debt = bucket.debt + pushed + units
  bucket.granted = bucket.granted + cost
  if bucket.adaptive then
    require('buckets/adaptive').use(bucket.adaptive, cost)
  end
  bucket.lineUs = bucket.openUs
  bucket.exists, bucket.changed = true, true
  return pushed
end

-- What the caller has to know of a grant that starts later, to give it back.
function Rate.tell(bucket, pushed, waitUs)
  if waitUs > 0 then
    put(bucket.granted)
    put(pushed)
  end
end

-- All of it if nothing was granted here since, else nothing: any other refund lets later grants break the bound.
function Rate.giveBack(bucket, _, cost, grantedAfter, pushed)
  if bucket.granted ~= grantedAfter then
    return false
  end
  local units = cost * bucket.limit.periodUs + pushed
  bucket.debt = min(bucket.debt, max(Debt.emptiedUnits(bucket), bucket.debt - units))
  bucket.promised = max(0, bucket.promised - units)
  bucket.granted = bucket.granted - cost
  bucket.changed = true
  return true
end

-- An overrun becomes debt. Of what was not used, only what has not drained since the start is given back, and only if nothing
-- is promised ahead.
function Rate.settle(bucket, startUs, cost, actual)
  local periodUs, fastest = bucket.limit.periodUs, bucket.limit.fastest
  if actual >= cost then
    bucket.debt = min(C.MAX_DEBT_UNITS, bucket.debt + (actual - cost) * periodUs)
    bucket.granted = bucket.granted + actual - cost
  elseif bucket.lastUs <= bucket.atUs then
    local elapsedUs, paid = max(0, bucket.atUs - startUs), cost * periodUs
    local undrained = elapsedUs >= ceil(paid / fastest) and 0 or paid - elapsedUs * fastest
    local left = bucket.debt - min((cost - actual) * periodUs, undrained)
    bucket.debt = min(bucket.debt, max(Debt.emptiedUnits(bucket), left))
  end
  bucket.changed = true
end

function Rate.observe(bucket, ...)
  require('buckets/adaptive').observe(bucket.adaptive, bucket.limit.adaptive, ...)
  Debt.changeRate(bucket, min(bucket.rate, Drain.rateAt(bucket, nowUs)))
end

-- Returns whether a penalty begins with this refusal.
function Rate.refused(bucket, hasTurn)
  local counts = hasTurn or bucket.pauseEndUs <= nowUs
  if counts and bucket.limit.penalty and require('buckets/rate/penalty').refused(bucket) then
    return true
  end
  if not bucket.exists then
    bucket.refusingSinceUs = 0 -- without state nothing is remembered
  end
  return false
end

function Rate.paused(bucket)
  bucket.refusingSinceUs = 0
end

-- A pause that is ended leaves the bucket empty, for the rest of the call as well. (Not yet, while a stepped clock stands still.)
function Rate.resumed(bucket)
  if bucket.atUs <= nowUs then
    bucket.debt = Debt.debtAt(bucket, nowUs, governorPause)
  end
end

function Rate.remaining(bucket)
  return max(0, floor((bucket.capacity - bucket.debt) / bucket.limit.periodUs))
end

function Rate.available(bucket)
  return max(0, Rate.remaining(bucket) - Debt.keptTokens(bucket.limit, Ask.priority))
end

function Rate.effective(bucket)
  return bucket.rate
end

function Rate.save(bucket)
  local storedSinceUs = bucket.storedRefusingSinceUs
  if not bucket.changed then
    -- Debt and time stay: a bucket is full since it was, not since its last refusal, or its line is never forgotten.
    if bucket.refused ~= bucket.storedRefused and bucket.refusingSinceUs ~= storedSinceUs then
      Fields.setOrDelete('over', bucket.refusingSinceUs, storedSinceUs)
    end
    return State.saveRefusals(bucket)
  end
  Fields.set('debt', bucket.debt)
  if not (bucket.sameTerms and bucket.storedRate == bucket.rate) then
    Fields.set('rate', bucket.rate)
    Fields.set('unit', bucket.limit.periodUs)
    Fields.set('burst', bucket.limit.burst)
    Fields.set('version', version)
  end
  Fields.setOrDelete('last', bucket.lastUs, 0)
  Fields.setOrDelete('promised', bucket.promised, bucket.storedPromised)
  Fields.setOrDelete('ramp', 0, bucket.oldRamp)
  Fields.setOrDelete('over', bucket.refusingSinceUs, storedSinceUs)
  Fields.setOrDelete('penalty', bucket.penaltyUntilUs, 0)
  if bucket.adaptive or bucket.hadAdaptive then
    require('buckets/adaptive').save(bucket)
  end
  -- A full bucket is the same as none once its line is forgotten; the state carries its own times, this is clean-up.
  State.save(bucket, Rate.expiresUs(bucket))
end

return Rate
