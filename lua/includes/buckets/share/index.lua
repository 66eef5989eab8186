--[[
  The kind "share": what one value has of a fair limit, beside the limit's own bucket, its `parent`; src/core/buckets/share/index.ts is
  the model and says why.

  Hash: debt, at, line, granted, refused, closed, closedFrom (its pause), share (what it drained at when written). The values that
  share: group.lua.
]]
local Group = require 'buckets/share/group'
local Line = require 'buckets/line'
local Pause = require 'buckets/pause'
local Fields = require 'fields'
local State = require 'buckets/state'
local C = require 'constants'
local Call = require 'call'
local movedBy = require('numbers').movedBy
local nowUs = Call.nowUs
local ceil, floor, max, min = math.ceil, math.floor, math.max, math.min
local REASON = require 'reasons'
local Share = { reason = REASON.share }

function Share.load(limit, keyNumber, parent, weight)
  local key = KEYS[keyNumber]
  local debt, atUs, lineUs, granted, refused, closed, closedFrom, share = unpack(redis.call('HMGET', key,
    'debt', 'at', 'line', 'granted', 'refused', 'closed', 'closedFrom', 'share'))
  local exists = (debt or atUs or lineUs) and true or false
  local bucket = {
    kind = Share, limit = limit, key = key, parent = parent, weight = weight, group = Group.load(KEYS[keyNumber + 1]),
    exists = exists, changed = false, debt = tonumber(debt) or 0, atUs = tonumber(atUs) or nowUs, lineUs = tonumber(lineUs) or 0,
    granted = tonumber(granted) or 0, refused = tonumber(refused) or 0, pause = Pause.of(closed, closedFrom),
    share = tonumber(share) or C.SCALE,
  }
  bucket.storedLineUs, bucket.storedRefused = bucket.lineUs, bucket.refused
  local paidUs, storedAtUs = bucket.atUs + ceil(bucket.debt / bucket.share), bucket.atUs
  local stepUs = bucket.atUs - nowUs
  if stepUs > C.MAX_CLOCK_STEP_US then
    bucket.lineUs, bucket.atUs = movedBy(bucket.lineUs, stepUs), nowUs
    bucket.pause = Pause.moved(bucket.pause, stepUs)
  elseif nowUs > bucket.atUs then
    local elapsedUs = nowUs - bucket.atUs
    bucket.debt = elapsedUs >= ceil(bucket.debt / bucket.share) and 0 or bucket.debt - elapsedUs * bucket.share
    bucket.atUs = nowUs
  end
  Pause.resolve(bucket, Call.pause)
  Line.open(bucket, bucket.debt == 0, paidUs)
  bucket.idleUs = max(0, nowUs - paidUs)
  bucket.outdated = storedAtUs > bucket.atUs
  bucket.statedUs = exists and storedAtUs or nil
  return bucket
end

local function unitsOf(bucket, cost)
  return min(C.MAX_DEBT_UNITS, ceil((cost * bucket.limit.periodUs * C.SCALE) / bucket.parent.rate))
end

local function capacityFor(bucket, cost)
  return unitsOf(bucket, max(cost, floor((bucket.limit.burst * bucket.view) / C.SCALE)))
end

-- Whether the limit has so much to spare that nobody's share matters.
local function hasSpare(bucket, cost)
  local limit = bucket.limit
  return bucket.parent.debt + (ceil(limit.burst / 2) + cost) * limit.periodUs <= limit.burst * limit.periodUs
end

-- Sets `view`, the share as a request sees it: while the limit is not used up, up to a quarter more for all; and `owed`, what it owes
-- at that. Returns how long until its share allows the cost, from the bucket's own time, and whether there is to spare.
local function see(bucket, cost)
  local limit, pause = bucket.limit, bucket.pause
  local burstUnits = limit.burst * limit.periodUs
  local left = max(0, burstUnits - bucket.parent.debt)
  bucket.view = floor(Group.shareOf(bucket.group, bucket.key, bucket.weight) * (1 + left / burstUnits / 4))
  -- What was to spare is owed for a second of its share at most.
  local units, capacity = unitsOf(bucket, cost), capacityFor(bucket, cost)
  local room = max(capacity, 2 * units)
  bucket.owed = min(bucket.debt, capacity + bucket.view * C.OWED_US)
  -- A pause of its own that is over has left it empty, and holds half of a ramp's worth back.
  local owedByPause = 0
  if pause and pause.untilUs <= bucket.atUs then
    local heldBack = ceil((bucket.view * Pause.rampUs(pause)) / 2)
    owedByPause = max(0, room + heldBack - (bucket.atUs - pause.untilUs) * bucket.view)
    bucket.owed = max(bucket.owed, owedByPause)
  end
  if bucket.pauseEndUs <= nowUs and owedByPause == 0 and hasSpare(bucket, cost) then
    return 0, true
  end
  local over = bucket.owed + units - room
  return over <= 0 and 0 or ceil(over / bucket.view), false
end

function Share.waitUs(bucket, cost, pausedUs)
  local waitUs, spare = see(bucket, cost)
  if spare then
    bucket.seenLineUs = 0
  end
  return max(pausedUs, waitUs > 0 and bucket.atUs - nowUs + waitUs or 0)
end

-- Nobody has come for what the share has: those of the line stand behind this one in their queue.
function Share.passesLine(bucket)
  return bucket.owed == 0
end

local function intervalUs(bucket, cost)
  return ceil(unitsOf(bucket, cost) / bucket.view)
end

function Share.lineAfterUs(bucket, cost, fromUs)
  return fromUs + intervalUs(bucket, cost)
end

-- Turns were given at the pace that the share had then. When others have come since, more return than it admits: all but the next
-- get a new turn.
function Share.patienceUs(bucket, cost)
  return floor(intervalUs(bucket, cost) / 2)
end

function Share.canReserve()
  return true
end

-- `openUs` is the line as the request saw it: none if there was to spare.
function Share.charge(bucket, cost)
  local group, units, capacity = bucket.group, unitsOf(bucket, cost), capacityFor(bucket, cost)
  local isBusy = bucket.granted > 0 and bucket.idleUs * 2 < intervalUs(bucket, cost)
  if bucket.owed * 2 > capacity or isBusy then
    Group.activate(group, bucket.key, bucket.weight, bucket.atUs)
  elseif not group.active[bucket.key] then
    group.light = group.light + units
  end
  group.changed = true
  bucket.debt = min(bucket.owed + units, capacity + bucket.view * C.OWED_US)
  bucket.granted = bucket.granted + cost
  bucket.lineUs = bucket.openUs
  bucket.share = bucket.view
  bucket.idleUs, bucket.statedUs = 0, bucket.atUs
  bucket.exists, bucket.changed, bucket.outdated = true, true, false
end

-- A refusal is about to be written here; a value that its own share refuses counts as active.
function Share.contends(bucket, isOwnReason)
  bucket.group.changed = true
  if isOwnReason then
    Group.activate(bucket.group, bucket.key, bucket.weight, bucket.atUs)
  end
end

-- Takes the share as it is seen now, unless what was stated last is still true.
function Share.restate(bucket, anyway)
  local us = bucket.statedUs
  if anyway or not (us and us <= bucket.atUs and bucket.pauseEndUs <= us) then
    bucket.share, bucket.debt, bucket.statedUs, bucket.changed = bucket.view, bucket.owed, bucket.atUs, true
    bucket.idleUs, bucket.outdated = 0, false
  end
end

-- Stated as it was seen before the pause, or before its end.
function Share.stateNow(bucket)
  see(bucket, 1)
  Share.restate(bucket, true)
  bucket.group.changed = true
end

function Share.remaining(bucket)
  local parent = bucket.parent
  return parent.pauseEndUs > nowUs and 0 or parent.kind.remaining(parent)
end

-- As much as the limit has, if its share allows any.
function Share.available(_, waitUs)
  return waitUs > 0 and 0 or C.MAX_DEBT_UNITS
end

function Share.effective(bucket)
  return bucket.view
end

Share.saveTogether = Group.saveAll

function Share.save(bucket)
  if not bucket.changed then
    return State.saveRefusals(bucket)
  end
  Fields.set('debt', bucket.debt)
  Fields.set('share', bucket.share)
  local keptUs = bucket.pause and bucket.pause.untilUs + C.PAUSE_KEPT_US or 0
  State.save(bucket, max(bucket.atUs + ceil(bucket.debt / bucket.share), keptUs) + C.LINE_GRACE_US)
end

return Share
