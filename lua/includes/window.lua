--[[
  Buckets of window limits; src/core/window.ts is the model and says why. Hash: at, line, start, counts (text), granted,
  refused, closed, mode, window (µs), base, total, last (µs); a log has its entries in a sorted set of its own: score the
  running total after the entry, member total:µs.
]]
--- @include "numbers"
--- @include "clock"
--- @include "gcra"
--- @include "line"
--- @include "fields"
local loadWindow, usedOf, windowWait, windowStartable, countIn, correctWindow, windowRest, saveWindow
-- Lua allows 200 locals in one function: what only this part needs stays in its block.
do
  local FIXED, SLIDING, LOG = 1, 2, 3

  local function cellOf(limit)
    return limit.window / limit.cells
  end

  local function startOf(limit, us)
    return limit.aligned and floor(us / limit.window) * limit.window or us
  end

  -- What began off the clock counts until the window by the clock ends in which it would have been forgotten.
  local function carriedStartOf(limit, us)
    return limit.aligned and ceil(us / limit.window) * limit.window or us
  end

  local function countsOf(limit)
    return limit.mode == SLIDING and limit.cells + 1 or limit.mode == FIXED and 1 or 0
  end

  local function blankCounts(limit)
    local counts = {}
    for index = 1, countsOf(limit) do
      counts[index] = 0
    end
    return counts
  end

  local function totalOf(bucket)
    if bucket.limit.mode == LOG then
      return bucket.total
    end
    local sum = 0
    for index = 1, #bucket.counts do
      sum = sum + bucket.counts[index]
    end
    return sum
  end

  function usedOf(bucket)
    local limit = bucket.limit
    if limit.mode == LOG then
      return bucket.total - bucket.base
    elseif limit.mode == FIXED then
      return bucket.counts[1]
    end
    local oldest, cell = bucket.counts[limit.cells + 1], cellOf(limit)
    local left = cell - (bucket.at - bucket.start * cell)
    return totalOf(bucket) - oldest + ceil((oldest * left) / cell)
  end

  local function entryTime(bucket, member)
    return max(0, tonumber(string.match(member, ':(%d+)$')) - (bucket.step or 0))
  end

  -- Writes what loading has only reckoned with: entries of a clock that was put right, counts of another window.
  local function takeOver(bucket)
    if bucket.converted then
      redis.call('DEL', bucket.entries)
      if bucket.lone and bucket.total > bucket.base then
        redis.call('ZADD', bucket.entries, whole(bucket.total), whole(bucket.total) .. ':' .. whole(bucket.lone))
      end
    elseif bucket.step then
      local entries = redis.call('ZRANGE', bucket.entries, 0, -1, 'WITHSCORES')
      redis.call('DEL', bucket.entries)
      for index = 1, #entries, 2 do
        local us = entryTime(bucket, entries[index])
        redis.call('ZADD', bucket.entries, entries[index + 1], entries[index + 1] .. ':' .. whole(us))
      end
    end
    bucket.converted, bucket.lone, bucket.step = nil, nil, nil
  end

  -- What has left the window counts no more; it is removed when the bucket is written.
  local function evict(bucket)
    local before, from = bucket.at - bucket.limit.window, 0
    if bucket.converted then
      bucket.base = bucket.lone and bucket.lone <= before and bucket.total or bucket.base
      return
    end
    while true do
      local entries = redis.call('ZRANGE', bucket.entries, from, from + 63, 'WITHSCORES')
      for index = 1, #entries, 2 do
        if entryTime(bucket, entries[index]) > before then
          return
        end
        bucket.base = tonumber(entries[index + 1])
      end
      if #entries < 128 then
        return
      end
      from = from + 64
    end
  end

  local function addEntry(bucket, us, cost)
    takeOver(bucket)
    bucket.total = bucket.total + cost
    bucket.last = us
    redis.call('ZADD', bucket.entries, whole(bucket.total), whole(bucket.total) .. ':' .. whole(us))
  end

  -- Counts of another mode, length or number of cells: all of them as if they had been granted at the latest time seen.
  local function convertWindow(bucket, limit, mode)
    local used
    if mode == LOG then
      used = bucket.total - bucket.base
    else
      used = 0
      for index = 1, #bucket.counts do
        used = used + bucket.counts[index]
      end
    end
    bucket.converted = true
    bucket.counts, bucket.base, bucket.total, bucket.last = blankCounts(limit), 0, 0, 0
    bucket.start = limit.mode == SLIDING and floor(bucket.at / cellOf(limit)) or 0
    if used > 0 then
      if limit.mode == LOG then
        bucket.total, bucket.last, bucket.lone = used, bucket.at, bucket.at
      else
        bucket.counts[1] = used
      end
      if limit.mode == FIXED then
        bucket.start = carriedStartOf(limit, bucket.at)
      end
    end
  end

  local function stepWindow(bucket, limit)
    local step = bucket.at - now
    bucket.at = now
    bucket.line, bucket.closed = movedBy(bucket.line, step), movedBy(bucket.closed, step)
    if limit.mode == FIXED then
      bucket.start = startOf(limit, movedBy(bucket.start, step))
    elseif limit.mode == SLIDING then
      bucket.start = floor(now / cellOf(limit))
    else
      bucket.step, bucket.last = step, max(0, bucket.last - step)
      bucket.lone = bucket.lone and max(0, bucket.lone - step)
    end
  end

  local function windowEmptyAt(bucket)
    local limit = bucket.limit
    if totalOf(bucket) - bucket.base == 0 then
      return bucket.at
    elseif limit.mode == FIXED then
      return bucket.start + limit.window
    elseif limit.mode == LOG then
      return bucket.last + limit.window
    end
    return (bucket.start + limit.cells + 1) * cellOf(limit)
  end

  local function moveWindow(bucket, limit)
    if bucket.at - now > MAX_CLOCK_STEP_US then
      stepWindow(bucket, limit)
    end
    bucket.at = max(now, bucket.at)
    if limit.mode == FIXED then
      if bucket.counts[1] > 0 and bucket.at >= bucket.start + limit.window then
        bucket.counts[1] = 0
      end
    elseif limit.mode == SLIDING then
      local cell = floor(bucket.at / cellOf(limit))
      local passed = min(cell - bucket.start, limit.cells + 1)
      if passed > 0 then
        for index = limit.cells + 1, 1, -1 do
          bucket.counts[index] = bucket.counts[index - passed] or 0
        end
        bucket.start = cell
      end
    else
      evict(bucket)
    end
  end

  -- Without state a window is empty; or it was full at `coldAt`, which may lie ahead.
  local function fillCold(bucket, limit)
    bucket.converted = true
    if coldAt == 0 or coldAt + limit.window <= now then
      return
    end
    if limit.mode == LOG then
      bucket.total, bucket.last, bucket.lone = limit.max, coldAt, coldAt
    else
      bucket.counts[1] = limit.max
      bucket.start = limit.mode == FIXED and startOf(limit, coldAt) or floor(coldAt / cellOf(limit))
    end
  end

  function loadWindow(bucket, limit)
    local stored = redis.call(
      'HMGET', bucket.key, 'at', 'line', 'start', 'counts', 'granted', 'refused', 'closed', 'mode', 'window', 'base',
      'total', 'last'
    )
    for field = 1, 5 do
      bucket.exists = bucket.exists or stored[field] ~= false
    end
    bucket.at, bucket.line = tonumber(stored[1]) or now, tonumber(stored[2]) or 0
    bucket.start = tonumber(stored[3]) or (limit.mode == SLIDING and floor(now / cellOf(limit)) or 0)
    bucket.granted, bucket.refused = tonumber(stored[5]) or 0, tonumber(stored[6]) or 0
    bucket.closed = tonumber(stored[7]) or 0
    bucket.base, bucket.total = tonumber(stored[10]) or 0, tonumber(stored[11]) or 0
    bucket.last = tonumber(stored[12]) or 0
    bucket.counts = stored[4] and {} or blankCounts(limit)
    for count in string.gmatch(stored[4] or '', '%d+') do
      bucket.counts[#bucket.counts + 1] = tonumber(count)
    end
    local mode, window = tonumber(stored[8]) or limit.mode, tonumber(stored[9]) or limit.window
    if mode ~= LOG then
      bucket.base, bucket.total, bucket.last = 0, 0, 0 -- of a log that it once was
    end
    local storedAt, storedClosed = bucket.at, bucket.closed
    bucket.hadLine = bucket.line > 0
    local same = mode == limit.mode and window == limit.window and #bucket.counts == countsOf(limit)
    if not bucket.exists then
      fillCold(bucket, limit)
    elseif not same then
      convertWindow(bucket, limit, mode)
    elseif limit.mode == FIXED and bucket.counts[1] > 0 then
      local start = carriedStartOf(limit, bucket.start)
      same, bucket.start = start == bucket.start, start
    end
    local emptyAt = windowEmptyAt(bucket)
    bucket.storedRest = max(emptyAt, bucket.closed) + LINE_GRACE_US
    moveWindow(bucket, limit)
    openLine(bucket, usedOf(bucket) == 0, min(emptyAt, bucket.at))
    bucket.outdated = storedAt > bucket.at or not same
    bucket.current = bucket.exists and storedAt <= bucket.at and same and max(storedClosed, closedUntil) <= storedAt
  end

  -- Cell by cell: within one, only the share of the oldest falls; at its end the next oldest begins to.
  local function slidingWait(bucket, cost)
    local limit = bucket.limit
    local length, cells, counts = cellOf(limit), limit.cells, bucket.counts
    local offset = bucket.at - bucket.start * length
    local sum = totalOf(bucket) - counts[cells + 1]
    for later = 0, cells do
      local oldest, room = counts[cells - later + 1], limit.max - sum - cost
      if room >= 0 then
        local enter = oldest == 0 and 0 or max(0, length - floor((room * length) / oldest))
        return later * length + max(enter, later == 0 and offset or 0) - offset
      end
      sum = sum - (counts[cells - later] or 0)
    end
    return limit.window + length - offset
  end

  -- From the bucket's own time until the cost fits.
  function windowWait(bucket, cost)
    local limit = bucket.limit
    local over = usedOf(bucket) + cost - limit.max
    if over <= 0 then
      return 0
    elseif limit.mode == FIXED then
      return bucket.start + limit.window - bucket.at
    elseif limit.mode == SLIDING then
      return slidingWait(bucket, cost)
    end
    if bucket.lone then
      return bucket.lone + limit.window - bucket.at
    end
    local freeing = redis.call('ZRANGEBYSCORE', bucket.entries, whole(bucket.base + over), '+inf', 'LIMIT', 0, 1)[1]
    return freeing and entryTime(bucket, freeing) + limit.window - bucket.at or limit.window
  end

  function windowStartable(bucket, start)
    local limit = bucket.limit
    if start <= bucket.at or limit.mode == LOG then
      return true
    elseif limit.mode == SLIDING then
      return floor(start / cellOf(limit)) == bucket.start
    elseif bucket.counts[1] > 0 then
      return start < bucket.start + limit.window
    end
    return not limit.aligned or startOf(limit, start) == startOf(limit, bucket.at)
  end

  function countIn(bucket, cost, start)
    local limit = bucket.limit
    bucket.granted = bucket.granted + cost
    if limit.mode == LOG then
      addEntry(bucket, max(start, bucket.at, bucket.total > bucket.base and bucket.last or 0), cost)
    else
      if limit.mode == FIXED and bucket.counts[1] == 0 then
        bucket.start = startOf(limit, max(start, bucket.at))
      end
      bucket.counts[1] = bucket.counts[1] + cost
    end
    bucket.line = bucket.open
    bucket.exists = true
    bucket.changed = true
  end

  -- Takes tokens out of the count again, or adds some. Returns whether all of it was done.
  function correctWindow(bucket, start, by)
    local limit = bucket.limit
    if by >= 0 then
      if by > 0 then
        countIn(bucket, by, bucket.at)
      end
      return true
    elseif limit.mode == LOG then
      return false
    end
    local cell = limit.mode == FIXED and 0 or bucket.start - floor(start / cellOf(limit))
    local there = limit.mode == SLIDING and cell >= 0 and cell <= limit.cells
    if limit.mode == FIXED then
      there = start >= bucket.start
    end
    if not there then
      return false
    end
    local given = min(bucket.counts[cell + 1], -by)
    bucket.counts[cell + 1] = bucket.counts[cell + 1] - given
    bucket.changed = true
    return given == -by
  end

  function windowRest(bucket)
    return max(windowEmptyAt(bucket), bucket.closed) + LINE_GRACE_US
  end

  function saveWindow(bucket)
    local key, limit = bucket.key, bucket.limit
    if bucket.changed or (bucket.joined and not bucket.current) then
      takeOver(bucket)
      local counts = {}
      for index = 1, #bucket.counts do
        counts[index] = whole(bucket.counts[index])
      end
      redis.call(
        'HSET', key, 'at', whole(bucket.at), 'start', whole(bucket.start), 'counts', table.concat(counts, ' '),
        'granted', whole(bucket.granted), 'mode', whole(limit.mode), 'window', whole(limit.window)
      )
      if limit.mode == LOG then
        redis.call('ZREMRANGEBYSCORE', bucket.entries, '-inf', whole(bucket.base))
        redis.call('HSET', key, 'base', whole(bucket.base), 'total', whole(bucket.total), 'last', whole(bucket.last))
      end
      setOrDelete(key, 'line', bucket.line, bucket.hadLine)
      setOrDelete(key, 'refused', bucket.refused, false)
      setOrDelete(key, 'closed', bucket.closed, false)
      local ms = ceil((windowRest(bucket) - now) / 1000)
      expireAfterMs(key, ms)
      if limit.mode == LOG then
        expireAfterMs(bucket.entries, ms)
      end
    else
      saveRefusals(bucket)
    end
  end
end
