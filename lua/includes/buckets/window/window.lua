--[[
  Buckets of window limits: read, brought to now, charged, written; src/core/buckets/window/window.ts is the model and says why. Reads
  `now`, `closedUntil`.

  Hash: at, line, start, counts (text), granted, refused, closed, mode, window (µs), base, total, last (µs). A log has its
  entries in a sorted set of its own: window-log.lua.
]]
--- @include "numbers"
--- @include "clock"
--- @include "buckets/rate/gcra"
--- @include "buckets/line"
--- @include "fields"
--- @include "buckets/window/counts"
--- @include "buckets/window/log"
--- @include "buckets/window/moving"

local function loadWindow(bucket, limit)
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
local function windowWait(bucket, cost)
  local limit = bucket.limit
  local over = usedOf(bucket) + cost - limit.max
  if over <= 0 then
    return 0
  elseif limit.mode == FIXED then
    return bucket.start + limit.window - bucket.at
  elseif limit.mode == SLIDING then
    return slidingWait(bucket, cost)
  end
  return logWait(bucket, over)
end

local function windowStartable(bucket, start)
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

local function countIn(bucket, cost, start)
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
local function correctWindow(bucket, start, by)
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
  local there = cell >= 0 and cell <= limit.cells
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

local function saveWindow(bucket)
  local key, limit = bucket.key, bucket.limit
  if bucket.changed or (bucket.joined and not bucket.current) then
    takeOverEntries(bucket)
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
