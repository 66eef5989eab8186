--[[
  Slots of concurrency limits; src/core/leases.ts is the model and says why.

  Hash: at, granted, refused, closed, fence, places (number of the last place given), adaptive.
  Leases: sorted set, score until (µs), member "fence cost holder". Queue: sorted set, score the place, member the holder.
  Waiting: hash, holder to "cost until woken instance" (woken: µs, 0: not); the instance is the process that waits, and is told on its channel.
]]
--- @include "numbers"
--- @include "clock"
--- @include "gcra"
--- @include "line"
--- @include "ramp"
--- @include "debt"
--- @include "fields"
--- @include "drain"
--- @include "adaptive"
--- @include "adaptive-text"
local slotsOf, placeOf, hasPlace, leaveQueue, loadSlots, slotWait, lease, queueUp, wakeWaiters, releaseSlot, renewSlot, saveSlots
-- Lua allows 200 locals in one function: what only this part needs stays in its block.
do
  local WAITING_US, ASK_AGAIN_US, WOKEN_US = 3000000, 1000000, 50000

  local function leaseMember(fence, cost, holder)
    return whole(fence) .. ' ' .. whole(cost) .. ' ' .. holder
  end

  local function parseLease(member)
    local fence, cost, holder = string.match(member, '^(%d+) (%d+) (.*)$')
    return tonumber(fence), tonumber(cost), holder
  end

  -- The slots there are now.
  function slotsOf(bucket)
    return slotsInRamp(bucket.allSlots, bucket.at, emptyOf(bucket))
  end

  function placeOf(bucket, holder)
    local text = redis.call('HGET', bucket.waiting, holder)
    if not text then
      return nil
    end
    local cost, untilUs, woken, instance = string.match(text, '^(%d+) (%d+) (%d+) (.*)$')
    local step = bucket.step or 0
    return tonumber(cost), movedBy(tonumber(untilUs), step), movedBy(tonumber(woken), step), instance
  end

  function hasPlace(bucket, holder)
    local _, untilUs = placeOf(bucket, holder)
    return untilUs and untilUs > bucket.at
  end

  local function writePlace(bucket, holder, cost, untilUs, woken, instance)
    local text = whole(cost) .. ' ' .. whole(untilUs) .. ' ' .. whole(woken) .. ' ' .. instance
    redis.call('HSET', bucket.waiting, holder, text)
  end

  function leaveQueue(bucket, holder)
    if redis.call('ZREM', bucket.queue, holder) == 1 then
      redis.call('HDEL', bucket.waiting, holder)
      bucket.changed = true
      return true
    end
    return false
  end

  -- Writes what loading has only reckoned with: a clock that was put right.
  local function takeOver(bucket)
    local step = bucket.step
    if not step then
      return
    end
    local leases = redis.call('ZRANGE', bucket.leases, 0, -1, 'WITHSCORES')
    for index = 1, #leases, 2 do
      redis.call('ZADD', bucket.leases, whole(movedBy(tonumber(leases[index + 1]), step)), leases[index])
    end
    local places = redis.call('HGETALL', bucket.waiting)
    for index = 1, #places, 2 do
      local cost, untilUs, woken, waiter = placeOf(bucket, places[index])
      writePlace(bucket, places[index], cost, untilUs, woken, waiter)
    end
    bucket.step = nil
  end

  local function setPlace(bucket, holder, cost, untilUs, woken, waiter)
    takeOver(bucket)
    writePlace(bucket, holder, cost, untilUs, woken, waiter)
  end

  function loadSlots(bucket, limit)
    local stored = redis.call(
      'HMGET', bucket.key, 'at', 'granted', 'refused', 'closed', 'fence', 'places', 'adaptive'
    )
    bucket.exists = stored[1] ~= false
    local at = tonumber(stored[1]) or now
    bucket.granted, bucket.refused = tonumber(stored[2]) or 0, tonumber(stored[3]) or 0
    bucket.closed, bucket.fence = tonumber(stored[4]) or 0, tonumber(stored[5]) or 0
    bucket.places = tonumber(stored[6]) or 0
    bucket.line, bucket.open = 0, 0
    if at - now > MAX_CLOCK_STEP_US then
      bucket.step = at - now
      bucket.closed = movedBy(bucket.closed, bucket.step)
      bucket.outdated = bucket.exists
      at = now
    end
    bucket.at = max(now, at)
    bucket.held, bucket.byHolder, bucket.lapsed, bucket.gone = 0, {}, {}, {}
    local heldBefore = 0
    local leases = redis.call('ZRANGE', bucket.leases, 0, -1, 'WITHSCORES')
    for index = 1, #leases, 2 do
      local fence, cost, holder = parseLease(leases[index])
      local untilUs = movedBy(tonumber(leases[index + 1]), bucket.step or 0)
      heldBefore = heldBefore + cost
      if untilUs > bucket.at then
        bucket.held = bucket.held + cost
        bucket.byHolder[holder] = { fence = fence, cost = cost, untilUs = untilUs, member = leases[index] }
      else
        bucket.lapsed[#bucket.lapsed + 1] = leases[index]
      end
    end
    bucket.allSlots = limit.max
    bucket.hadAdaptive = stored[7] ~= false
    if limit.adaptive then
      bucket.adaptive = stored[7] and readAdaptive(stored[7]) or nil
      if bucket.adaptive then
        adaptiveHold(bucket.adaptive, heldBefore)
        adaptiveRise(bucket.adaptive, limit.adaptive, 0)
      else
        bucket.adaptive = adaptiveBegun(limit.adaptive, limit.max * 1000)
      end
      adaptiveHold(bucket.adaptive, bucket.held)
      bucket.allSlots = max(1, floor(bucket.adaptive.value / 1000))
    end
  end

  -- Calls `visit` with each live place from the head of the queue until it returns true. Lapsed ones are removed.
  local function eachPlace(bucket, visit)
    local from = 0
    while true do
      local holders = redis.call('ZRANGE', bucket.queue, from, from + 15)
      if #holders == 0 then
        return
      end
      for index = 1, #holders do
        local holder = holders[index]
        local cost, untilUs, woken, waiter = placeOf(bucket, holder)
        from = from + 1
        if not cost or untilUs <= bucket.at then
          bucket.gone[#bucket.gone + 1] = holder
        else
          if visit(holder, cost, untilUs, woken, waiter) then
            return
          end
        end
      end
    end
  end

  -- An adaptive limit may have fallen below a cost: that passes alone.
  local function askedOf(bucket, cost)
    return bucket.adaptive and min(cost, bucket.allSlots) or cost
  end

  -- What a place in the queue still needs, besides what its holder has; and the same, or 0 if it is passed over. `gone` are
  -- the processes that have not come when one of their places was woken.
  local function needOf(bucket, gone, holder, cost, woken, waiter)
    local own = bucket.byHolder[holder]
    local need = max(0, askedOf(bucket, cost) - (own and own.cost or 0))
    local late = woken > 0 and bucket.at >= woken + WOKEN_US
    if late and waiter ~= '' then
      gone[waiter] = true
    end
    return need, (late or gone[waiter]) and 0 or need
  end

  -- 0: there is room for the holder, and nobody before it in the queue. Else when it is worth asking again.
  function slotWait(bucket, cost, holder)
    local own = bucket.byHolder[holder]
    -- Whoever held slots when the store lost them has come to renew them by then.
    local cold = (own or coldAt == 0) and 0 or max(0, coldAt + bucket.limit.lease - now)
    local taken, asked = bucket.held - (own and own.cost or 0), askedOf(bucket, cost)
    if not own and taken + asked <= bucket.allSlots then
      local gone = {}
      eachPlace(bucket, function(other, theirs, _, woken, waiter)
        if other == holder then
          return true
        end
        local _, counted = needOf(bucket, gone, other, theirs, woken, waiter)
        taken = taken + counted
        return taken + asked > bucket.allSlots
      end)
    end
    local needed, empty = taken + asked, emptyOf(bucket)
    if needed <= slotsOf(bucket) then
      return cold
    end
    local first = ASK_AGAIN_US
    if needed <= bucket.allSlots and isRamping(bucket.at, empty) then
      first = min(first, whenSlots(needed, bucket.allSlots, empty) - bucket.at)
    end
    for _, lease in pairs(bucket.byHolder) do
      first = min(first, lease.untilUs - bucket.at)
    end
    return max(cold, first)
  end

  function lease(bucket, cost, holder)
    takeOver(bucket)
    local own = bucket.byHolder[holder]
    if own then
      redis.call('ZREM', bucket.leases, own.member)
      bucket.held = bucket.held - own.cost
    end
    bucket.fence = max(bucket.fence + 1, bucket.at)
    local untilUs, member = bucket.at + bucket.limit.lease, leaseMember(bucket.fence, cost, holder)
    redis.call('ZADD', bucket.leases, whole(untilUs), member)
    bucket.byHolder[holder] = { fence = bucket.fence, cost = cost, untilUs = untilUs, member = member }
    bucket.held = bucket.held + cost
    leaveQueue(bucket, holder)
    bucket.granted = bucket.granted + cost
    bucket.exists = true
    bucket.changed = true
    if bucket.adaptive then
      adaptiveHold(bucket.adaptive, bucket.held)
    end
    return bucket.fence
  end

  function queueUp(bucket, cost, holder)
    if not redis.call('ZSCORE', bucket.queue, holder) then
      bucket.places = bucket.places + 1
      redis.call('ZADD', bucket.queue, whole(bucket.places), holder)
    else
      local _, untilUs = placeOf(bucket, holder)
      if untilUs and untilUs <= bucket.at then
        -- Its place had lapsed: it goes to the end.
        bucket.places = bucket.places + 1
        redis.call('ZADD', bucket.queue, whole(bucket.places), holder)
      end
    end
    setPlace(bucket, holder, cost, bucket.at + WAITING_US, 0, instance)
    bucket.exists = true
    bucket.changed = true
  end

  -- Tells those at the head of the queue for whom there is room now, and who do not know it yet.
  function wakeWaiters(bucket)
    local taken, gone, unheard = bucket.held, {}, {}
    eachPlace(bucket, function(holder, cost, untilUs, woken, waiter)
      local need, counted = needOf(bucket, gone, holder, cost, woken, waiter)
      if taken + need <= slotsOf(bucket) and woken == 0 then
        -- Nobody there to hear it: its process is gone, or asks by itself and gets another place then. (A user who may not
        -- publish must not end the script half-way.)
        local told = redis.pcall('PUBLISH', wakePrefix .. waiter, holder)
        local heard = type(told) == 'number' and (told > 0 or not countsListeners)
        if heard then
          setPlace(bucket, holder, cost, untilUs, bucket.at, waiter)
        else
          counted = 0
          unheard[#unheard + 1] = holder
        end
      end
      taken = taken + counted
      return taken > slotsOf(bucket)
    end)
    for index = 1, #unheard do
      leaveQueue(bucket, unheard[index])
    end
  end

  local function heldLease(bucket, holder, fence)
    local own = bucket.byHolder[holder]
    return own and own.fence == fence and own or nil
  end

  function releaseSlot(bucket, holder, fence)
    local own = heldLease(bucket, holder, fence)
    if own then
      redis.call('ZREM', bucket.leases, own.member)
      bucket.byHolder[holder] = nil
      bucket.held = bucket.held - own.cost
    end
    bucket.changed = bucket.changed or bucket.exists
    wakeWaiters(bucket)
    return own ~= nil
  end

  function renewSlot(bucket, holder, fence, cost)
    local own = heldLease(bucket, holder, fence)
    local isLost = coldAt > 0 and fence < coldAt and now < coldAt + bucket.limit.lease
    if not own and isLost and not bucket.byHolder[holder] then
      -- The store has lost its leases, and this one may have been among them: it is taken in again.
      own = { fence = fence, cost = cost, member = leaseMember(fence, cost, holder) }
      bucket.byHolder[holder] = own
      bucket.held = bucket.held + cost
      bucket.fence = max(bucket.fence, fence)
      bucket.exists = true
    end
    if own then
      takeOver(bucket)
      own.untilUs = bucket.at + bucket.limit.lease
      redis.call('ZADD', bucket.leases, whole(own.untilUs), own.member)
      bucket.changed = true
    end
    return own ~= nil
  end

  function saveSlots(bucket)
    local key = bucket.key
    if not bucket.changed then
      return saveRefusals(bucket)
    end
    redis.call(
      'HSET', key, 'at', whole(bucket.at), 'granted', whole(bucket.granted), 'refused', whole(bucket.refused), 'fence',
      whole(bucket.fence), 'places', whole(bucket.places)
    )
    setOrDelete(key, 'closed', bucket.closed, false)
    takeOver(bucket)
    for index = 1, #bucket.gone do
      local _, untilUs = placeOf(bucket, bucket.gone[index])
      if not untilUs or untilUs <= bucket.at then
        leaveQueue(bucket, bucket.gone[index])
      end
    end
    for index = 1, #bucket.lapsed do
      redis.call('ZREM', bucket.leases, bucket.lapsed[index])
    end
    -- Whoever waits has a place for this long at the most.
    local rest = max(bucket.at + WAITING_US, bucket.closed)
    for _, held in pairs(bucket.byHolder) do
      rest = max(rest, held.untilUs)
    end
    if bucket.adaptive then
      redis.call('HSET', key, 'adaptive', writeAdaptive(bucket.adaptive))
      rest = max(rest, bucket.at + ADAPTIVE_KEPT_US)
    elseif bucket.hadAdaptive then
      redis.call('HDEL', key, 'adaptive')
    end
    local ms = ceil((rest + LINE_GRACE_US - now) / 1000)
    expireAfterMs(key, ms)
    expireAfterMs(bucket.leases, ms)
    expireAfterMs(bucket.queue, ms)
    expireAfterMs(bucket.waiting, ms)
  end
end
