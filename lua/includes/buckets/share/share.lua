--[[
  How values share a fair limit; src/core/buckets/share/share.ts is the model and says why. Reads `now`, `closedUntil`.

  Hash of a value: debt, at, line, granted, refused, closed, share. Hash of the group: second, light, before, and for each
  active value, by the name of its own key, "weight until".
]]
--- @include "numbers"
--- @include "clock"
--- @include "buckets/rate/gcra"
--- @include "buckets/ramp"
--- @include "buckets/rate/debt"
--- @include "buckets/line"
--- @include "fields"
local stateShare, shareUnits, loadShare, shareWait, activate, chargeShare, saveShare, saveGroups
-- Lua allows 200 locals in one function: what only this part needs stays in its block.
do
  local WHOLE, SECOND_US, ACTIVE_US, OWED_US, PAUSE_KEPT_US = 65536, 1000000, 1000000, 1000000, 60000000
  local LEAST_LEFT = WHOLE / 4
  local groups = {}

  local function loadGroup(key)
    local group = groups[key]
    if group then
      return group
    end
    group = { key = key, active = {}, gone = {}, second = floor(now / SECOND_US), light = 0, before = 0, changed = false }
    groups[key] = group
    local stored = redis.call('HGETALL', key)
    local second, light, before = group.second, 0, 0
    for index = 1, #stored, 2 do
      local field, value = stored[index], stored[index + 1]
      if field == 'second' then
        second = tonumber(value)
      elseif field == 'light' then
        light = tonumber(value)
      elseif field == 'before' then
        before = tonumber(value)
      else
        local weight, untilUs = string.match(value, '^(%d+) (%d+)$')
        untilUs = tonumber(untilUs)
        if untilUs > now and untilUs - now <= ACTIVE_US + MAX_CLOCK_STEP_US then
          group.active[field] = { weight = tonumber(weight), untilUs = untilUs }
        else
          group.gone[#group.gone + 1] = field
        end
      end
    end
    local passed = group.second - second
    group.light = passed == 0 and light or 0
    group.before = passed == 0 and before or passed == 1 and light or 0
    return group
  end

  -- The share of a value now, in units a microsecond.
  local function shareIn(group, member, weight)
    local total = weight
    for other, theirs in pairs(group.active) do
      if other ~= member then
        total = total + theirs.weight
      end
    end
    local rest = SECOND_US - (now - group.second * SECOND_US)
    local light = floor((group.before * rest) / SECOND_US) + group.light
    local left = max(LEAST_LEFT, WHOLE - floor(light / SECOND_US))
    return max(1, floor((left * weight) / total))
  end

  function shareUnits(bucket, cost)
    return min(MAX_DEBT, ceil((cost * bucket.whole.limit.unit * WHOLE) / bucket.whole.rate))
  end

  local function shareCapacity(bucket, cost)
    return shareUnits(bucket, max(cost, floor((bucket.whole.limit.burst * bucket.view) / WHOLE)))
  end

  function loadShare(bucket, groupKey)
    local stored = redis.call('HMGET', bucket.key, 'debt', 'at', 'line', 'granted', 'refused', 'closed', 'share')
    bucket.exists = stored[1] ~= false or stored[2] ~= false or stored[3] ~= false
    bucket.debt, bucket.at = tonumber(stored[1]) or 0, tonumber(stored[2]) or now
    bucket.line = tonumber(stored[3]) or 0
    bucket.granted, bucket.refused = tonumber(stored[4]) or 0, tonumber(stored[5]) or 0
    bucket.closed, bucket.share = tonumber(stored[6]) or 0, tonumber(stored[7]) or WHOLE
    bucket.group = loadGroup(groupKey)
    bucket.hadLine = bucket.line > 0
    local paidAt, storedAt = bucket.at + ceil(bucket.debt / bucket.share), bucket.at
    local step = bucket.at - now
    if step > MAX_CLOCK_STEP_US then
      bucket.line, bucket.closed = movedBy(bucket.line, step), movedBy(bucket.closed, step)
      bucket.at = now
    elseif now > bucket.at then
      local elapsed = worth(bucket.at, now, bucket.closed)
      bucket.debt = elapsed >= ceil(bucket.debt / bucket.share) and 0 or bucket.debt - elapsed * bucket.share
      bucket.at = now
    end
    openLine(bucket, bucket.debt == 0, paidAt)
    bucket.idle = max(0, now - paidAt)
    bucket.outdated = storedAt > bucket.at
    bucket.statedAt = bucket.exists and storedAt or nil
  end

  -- Whether the limit has so much to spare that nobody's share matters.
  local function hasSpare(bucket, cost)
    local limit = bucket.whole.limit
    return bucket.whole.debt + (ceil(limit.burst / 2) + cost) * limit.unit <= limit.burst * limit.unit
  end

  -- The share as a request sees it: while the limit is not used up, up to a quarter more for all.
  local function lookAtShare(bucket)
    local capacity = bucket.whole.limit.burst * bucket.whole.limit.unit
    local left = max(0, capacity - bucket.whole.debt)
    bucket.view = floor(shareIn(bucket.group, bucket.key, bucket.weight) * (1 + left / capacity / 4))
  end

  -- From the bucket's own time until its share allows the cost. Whether there is to spare is told besides.
  function shareWait(bucket, cost)
    lookAtShare(bucket)
    -- What was to spare is owed for a second of its share at most.
    local units, capacity, closed = shareUnits(bucket, cost), shareCapacity(bucket, cost), bucket.closed
    local room = max(capacity, 2 * units)
    bucket.owed = min(bucket.debt, capacity + bucket.view * OWED_US)
    -- A pause of its own that is over has left it empty, and in a ramp.
    local least = 0
    if closed > 0 and closed <= bucket.at then
      least = max(0, room - worth(closed, bucket.at, closed) * bucket.view)
      bucket.owed = max(bucket.owed, least)
    end
    if emptyOf(bucket) <= now and least == 0 and hasSpare(bucket, cost) then
      return 0, true
    end
    local over = bucket.owed + units - room
    return over <= 0 and 0 or whenWorth(ceil(over / bucket.view), bucket.at, closed) - bucket.at, false
  end

  function activate(bucket)
    bucket.group.active[bucket.key] = { weight = bucket.weight, untilUs = bucket.at + ACTIVE_US, fresh = true }
    bucket.group.changed = true
  end

  -- `open` is the line as the request saw it: none if there was to spare.
  function chargeShare(bucket, cost)
    local units, capacity = shareUnits(bucket, cost), shareCapacity(bucket, cost)
    local idle = bucket.granted > 0 and bucket.idle * 2 < ceil(shareUnits(bucket, cost) / bucket.view)
    if bucket.owed * 2 > capacity or idle then
      activate(bucket)
    elseif not bucket.group.active[bucket.key] then
      bucket.group.light = bucket.group.light + units
    end
    bucket.group.changed = true
    bucket.debt = min(bucket.owed + units, capacity + bucket.view * OWED_US)
    bucket.granted = bucket.granted + cost
    bucket.line = bucket.open
    bucket.share = bucket.view
    bucket.idle, bucket.statedAt = 0, bucket.at
    bucket.exists, bucket.outdated = true, false
    bucket.changed = true
  end

  -- Takes the share as it is seen now, unless what was stated last is still true.
  function stateShare(bucket, anyway)
    local at = bucket.statedAt
    if anyway or not (at and at <= bucket.at and max(bucket.closed, closedUntil) <= at) then
      bucket.share, bucket.debt, bucket.statedAt, bucket.changed = bucket.view, bucket.owed, bucket.at, true
      bucket.idle, bucket.outdated = 0, false
    end
  end

  function saveShare(bucket)
    local key = bucket.key
    if bucket.changed then
      redis.call(
        'HSET', key, 'debt', whole(bucket.debt), 'at', whole(bucket.at), 'granted', whole(bucket.granted), 'share',
        whole(bucket.share)
      )
      setOrDelete(key, 'line', bucket.line, bucket.hadLine)
      setOrDelete(key, 'refused', bucket.refused, false)
      setOrDelete(key, 'closed', bucket.closed, false)
      local kept = bucket.closed == 0 and 0 or bucket.closed + PAUSE_KEPT_US
      local rest = max(bucket.at + ceil(bucket.debt / bucket.share), kept) + LINE_GRACE_US
      expireAfterMs(key, ceil((rest - now) / 1000))
    else
      saveRefusals(bucket)
    end
  end

  function saveGroups()
    for key, group in pairs(groups) do
      if group.changed then
        redis.call('HSET', key, 'second', whole(group.second), 'light', whole(group.light), 'before', whole(group.before))
        for member, theirs in pairs(group.active) do
          if theirs.fresh then
            redis.call('HSET', key, member, whole(theirs.weight) .. ' ' .. whole(theirs.untilUs))
          end
        end
        for index = 1, #group.gone do
          if not group.active[group.gone[index]] then
            redis.call('HDEL', key, group.gone[index])
          end
        end
        expireAfterMs(key, ceil(((group.second + 2) * SECOND_US + LINE_GRACE_US - now) / 1000))
      end
    end
  end
end
