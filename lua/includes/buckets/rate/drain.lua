--[[
  What time, pauses and changes of the limits make of a bucket; src/core/buckets/rate/drain.ts is the model and says why.
]]
local Debt = require 'buckets/rate/debt'
local Pause = require 'buckets/pause'
local C = require 'constants'
local Call = require 'call'
local movedBy = require('numbers').movedBy
local Drain = {}
local nowUs, version, changedAtUs = Call.nowUs, Call.version, Call.changedAtUs
local drainedBy, debtAt, changeRate = Debt.drainedBy, Debt.debtAt, Debt.changeRate
local ceil, max, min = math.ceil, math.max, math.min

local function adaptedState(bucket, limit)
  local Adaptive, state = require 'buckets/adaptive', bucket.adaptive
  if not state or nowUs - bucket.atUs > C.ADAPTIVE_KEPT_US then
    return Adaptive.begun(limit.adaptive, limit.rate)
  end
  Adaptive.rise(state, limit.adaptive, limit.adaptive.periodUs)
  return state
end

local function stepBack(bucket)
  local stepUs = bucket.atUs - nowUs
  bucket.atUs = nowUs
  for _, time in ipairs { 'lineUs', 'lastUs', 'refusingSinceUs', 'penaltyUntilUs' } do
    bucket[time] = movedBy(bucket[time], stepUs)
  end
  bucket.pause = Pause.moved(bucket.pause, stepUs)
  Pause.resolve(bucket, Call.pause)
end

local function advance(bucket, us)
  if us < bucket.atUs then
    return
  end
  if bucket.promised > 0 then
    bucket.promised = drainedBy(bucket, bucket.promised, us - bucket.atUs)
  end
  bucket.debt = debtAt(bucket, us, Call.pause)
  bucket.atUs = us
end

-- What it drains at: what an adaptive limit has come to, or the limit's rate; in a penalty a share of it.
function Drain.rateAt(bucket, us)
  local limit = bucket.limit
  local rate = bucket.adaptive and bucket.adaptive.value or limit.rate
  if limit.penalty and bucket.penaltyUntilUs > us then
    return require('buckets/rate/penalty').reduced(limit.penalty, rate)
  end
  return rate
end

-- Takes the bucket to when the limits changed, and there into the terms of the new ones; what is promised later is recalled.
local function changeOver(bucket, limit, burst)
  local periodUs = bucket.periodUs
  advance(bucket, changedAtUs == 0 and nowUs or min(changedAtUs, nowUs))
  local laterUs = bucket.lastUs - bucket.atUs - C.RECALL_US
  if laterUs > 0 and bucket.promised > 0 then
    local recalled = min(bucket.promised, burst * periodUs + bucket.rate * laterUs)
    bucket.debt = min(bucket.debt, max(burst * periodUs + bucket.rate * C.RECALL_US, bucket.debt - recalled))
    bucket.lastUs = bucket.atUs + C.RECALL_US
  end
  bucket.promised = 0
  if bucket.lineUs > bucket.atUs then
    local fromUs = min(bucket.lineUs, max(bucket.atUs, bucket.pauseEndUs))
    local pace = (bucket.rate * limit.periodUs) / (limit.rate * periodUs)
    bucket.lineUs = fromUs + min(C.MAX_AHEAD_US, ceil((bucket.lineUs - fromUs) * pace))
  end
  if periodUs ~= limit.periodUs then
    bucket.debt = Debt.convert(bucket.debt, periodUs, limit.periodUs)
    bucket.periodUs = limit.periodUs
  end
  bucket.rate = Drain.rateAt(bucket, bucket.atUs)
end

-- Brings a bucket that is in the terms it was stored under to now, in those of its limit.
function Drain.toNow(bucket, limit, burst, storedVersion)
  if bucket.atUs - nowUs > C.MAX_CLOCK_STEP_US then
    stepBack(bucket)
  end
  bucket.adaptive = limit.adaptive and adaptedState(bucket, limit) or nil
  local rate = Drain.rateAt(bucket, nowUs)
  if storedVersion ~= version or bucket.periodUs ~= limit.periodUs then
    changeOver(bucket, limit, burst)
  end
  if bucket.penaltyUntilUs > bucket.atUs and bucket.penaltyUntilUs < nowUs then
    advance(bucket, bucket.penaltyUntilUs)
    changeRate(bucket, rate)
  end
  advance(bucket, nowUs)
  if bucket.lastUs <= nowUs + C.RECALL_US then
    bucket.promised = 0
  end
  changeRate(bucket, rate)
end

return Drain
