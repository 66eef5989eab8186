--[[
  The kind "concurrency": read, brought to now, leased, written; src/core/buckets/concurrency/index.ts is the model.

  Hash: at, granted, refused, closed, closedFrom (its pause), fence, places (number of the last place given), adaptive (text). Leases and
  queue: leases.lua, places.lua.
]]
local Leases = require 'buckets/concurrency/leases'
local Places = require 'buckets/concurrency/places'
local Queue = require 'buckets/concurrency/queue'
local Pause = require 'buckets/pause'
local State = require 'buckets/state'
local Fields = require 'fields'
local C = require 'constants'
local Call = require 'call'
local Ask = require 'ask'
local put = require('reply').put
local nowUs, coldAtUs = Call.nowUs, Call.coldAtUs
local max, min = math.max, math.min
local REASON = require 'reasons'
local Concurrency = { reason = REASON.concurrency, hasQueue = true }

local function loadAdaptive(bucket, text, heldBefore)
  local Adaptive, rule = require 'buckets/adaptive', bucket.limit.adaptive
  bucket.adaptive = text and Adaptive.fromText(text) or nil
  if bucket.adaptive then
    Adaptive.hold(bucket.adaptive, heldBefore)
    Adaptive.rise(bucket.adaptive, rule, 0)
  else
    bucket.adaptive = Adaptive.begun(rule, bucket.limit.max * 1000)
  end
  Leases.followAdaptive(bucket)
end

function Concurrency.load(limit, keyNumber)
  local key = KEYS[keyNumber]
  local atUs, granted, refused, closed, closedFrom, fence, places, adaptive = unpack(redis.call('HMGET', key,
    'at', 'granted', 'refused', 'closed', 'closedFrom', 'fence', 'places', 'adaptive'))
  local bucket = {
    kind = Concurrency, limit = limit, key = key, leases = KEYS[keyNumber + 1], queue = KEYS[keyNumber + 2],
    waiting = KEYS[keyNumber + 3],
    exists = atUs ~= false, changed = false, atUs = tonumber(atUs) or nowUs,
    granted = tonumber(granted) or 0, refused = tonumber(refused) or 0, pause = Pause.of(closed, closedFrom),
    fence = tonumber(fence) or 0, places = tonumber(places) or 0,
    lineUs = 0, openUs = 0, storedLineUs = 0, allSlots = limit.max, held = 0, byHolder = {}, lapsed = {}, gone = {},
    hadAdaptive = adaptive ~= false,
  }
  bucket.storedRefused = bucket.refused
  if bucket.atUs - nowUs > C.MAX_CLOCK_STEP_US then
    bucket.stepUs = bucket.atUs - nowUs
    bucket.pause = Pause.moved(bucket.pause, bucket.stepUs)
    bucket.outdated = true
    bucket.atUs = nowUs
  end
  bucket.atUs = max(nowUs, bucket.atUs)
  Pause.resolve(bucket, Call.pause)
  local heldBefore = Leases.load(bucket)
  if limit.adaptive then
    loadAdaptive(bucket, adaptive, heldBefore)
  end
  return bucket
end

-- The slots taken by those that hold them or stand in the queue before the holder; enough of them to know that none is left.
local function takenBefore(bucket, asked, holder)
  local taken, late = bucket.held, {}
  Queue.each(bucket, function(other, cost, _, wokenUs, waiter)
    if other == holder then
      return true
    end
    local _, counted = Queue.needOf(bucket, late, other, cost, wokenUs, waiter)
    taken = taken + counted
    return taken + asked > bucket.allSlots
  end)
  return taken
end

-- 0: there is room for the holder, and nobody before it in the queue. Else when it is worth asking again.
function Concurrency.waitUs(bucket, cost, pausedUs)
  local holder, allSlots = Ask.holder, bucket.allSlots
  local own = bucket.byHolder[holder]
  -- Whoever held slots when the store lost them has come to renew them by then.
  local coldUs = (own or coldAtUs == 0) and 0 or max(0, coldAtUs + bucket.limit.leaseUs - nowUs)
  local asked, taken = Leases.askedOf(bucket, cost), bucket.held - (own and own.cost or 0)
  if not own and taken + asked <= allSlots then
    taken = takenBefore(bucket, asked, holder)
  end
  local needed = taken + asked
  -- A ramp keeps nobody from what it holds.
  if needed <= (own and cost <= own.cost and allSlots or Leases.slotsNow(bucket)) then
    return max(pausedUs, coldUs)
  end
  local againUs = C.ASK_AGAIN_US
  if needed <= allSlots then
    againUs = min(againUs, Pause.whenOpened(needed, allSlots, bucket.laterPause) - bucket.atUs)
  end
  for _, lease in pairs(bucket.byHolder) do
    againUs = min(againUs, lease.untilUs - bucket.atUs)
  end
  return max(pausedUs, coldUs, againUs)
end

-- A slot that waits for its start would be held idle.
function Concurrency.canReserve()
  return false
end

-- Returns the fencing number.
function Concurrency.charge(bucket, cost)
  local fence = Leases.lease(bucket, cost, Ask.holder)
  Places.remove(bucket, Ask.holder)
  bucket.granted = bucket.granted + cost
  if bucket.adaptive then
    require('buckets/adaptive').hold(bucket.adaptive, bucket.held)
  end
  return fence
end

function Concurrency.tell(_, fence)
  put(fence)
end

-- A refused request keeps its place in the queue only if it waits for nothing else.
function Concurrency.keepPlace(bucket, cost, isRefusing)
  local holder = Ask.holder
  if isRefusing and Ask.queues then
    Queue.join(bucket, cost, holder)
    bucket.refused = bucket.refused + 1
    Queue.wake(bucket)
  elseif Places.isLive(bucket, holder) and Places.remove(bucket, holder) then
    Queue.wake(bucket)
  end
end

Concurrency.wake = Queue.wake

function Concurrency.release(bucket, holder, fence)
  local held = Leases.release(bucket, holder, fence)
  Queue.wake(bucket)
  return held
end

function Concurrency.renew(bucket, holder, fence, cost)
  local isLost = coldAtUs > 0 and fence < coldAtUs and nowUs < coldAtUs + bucket.limit.leaseUs
  return Leases.renew(bucket, holder, fence, cost, isLost)
end

function Concurrency.leave(bucket, holder)
  Places.remove(bucket, holder)
  bucket.changed = bucket.changed or bucket.exists
  Queue.wake(bucket)
end

function Concurrency.observe(bucket, ...)
  require('buckets/adaptive').observe(bucket.adaptive, bucket.limit.adaptive, ...)
  Leases.followAdaptive(bucket)
end

function Concurrency.remaining(bucket)
  return max(0, Leases.slotsNow(bucket) - bucket.held)
end
Concurrency.available = Concurrency.remaining
Concurrency.effective = Leases.slotsNow

function Concurrency.save(bucket)
  if not bucket.changed then
    return State.saveRefusals(bucket)
  end
  Fields.set('fence', bucket.fence)
  Fields.set('places', bucket.places)
  if bucket.adaptive or bucket.hadAdaptive then
    require('buckets/adaptive').save(bucket)
  end
  Leases.takeOver(bucket)
  for index = 1, #bucket.gone do
    if not Places.isLive(bucket, bucket.gone[index]) then
      Places.remove(bucket, bucket.gone[index])
    end
  end
  Leases.removeLapsed(bucket)
  -- A place in the queue lasts for this long at the most.
  local lastsUs = max(bucket.atUs + C.WAITING_US, bucket.pause and bucket.pause.untilUs or 0)
  for _, lease in pairs(bucket.byHolder) do
    lastsUs = max(lastsUs, lease.untilUs)
  end
  if bucket.adaptive then
    lastsUs = max(lastsUs, bucket.atUs + C.ADAPTIVE_KEPT_US)
  end
  State.save(bucket, lastsUs + C.LINE_GRACE_US, bucket.leases, bucket.queue, bucket.waiting)
end

return Concurrency
