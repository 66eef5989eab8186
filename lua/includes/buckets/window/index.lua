--[[
  The kind "window": read, brought to now, counted in, written; src/core/buckets/window/index.ts is the model and says why.

  Hash: at, line, start (µs; sliding: number of the newest cell), counts (text, newest first), granted, refused, closed, closedFrom (its
  pause), mode, window (µs), base, total, last (µs). A log has its entries in a sorted set of its own: log.lua.
]]
local Counts = require 'buckets/window/counts'
local Drain = require 'buckets/window/drain'
local Log = require 'buckets/window/log'
local Line = require 'buckets/line'
local Pause = require 'buckets/pause'
local Fields = require 'fields'
local State = require 'buckets/state'
local REASON = require 'reasons'
local MODE = require 'modes'
local asText = require('numbers').asText
local Call = require 'call'
local nowUs = Call.nowUs
local C = require 'constants'
local Window = { reason = REASON.window }

local cellUs, usedOf = Counts.cellUs, Counts.used
local ceil, floor, max, min = math.ceil, math.floor, math.max, math.min

function Window.expiresUs(bucket)
  if not bucket.changed then
    return bucket.storedExpiresUs
  end
  return max(Counts.emptyUs(bucket), bucket.pause and bucket.pause.untilUs or 0) + C.LINE_GRACE_US
end

function Window.load(limit, keyNumber)
  local key = KEYS[keyNumber]
  local atUs, lineUs, start, counts, granted, refused, closed, closedFrom, mode, windowUs, base, total, lastUs =
    unpack(redis.call('HMGET', key,
    'at', 'line', 'start', 'counts', 'granted', 'refused', 'closed', 'closedFrom', 'mode', 'window', 'base', 'total',
    'last'))
  local exists = (atUs or lineUs or start or counts or granted) and true or false
  mode, windowUs = tonumber(mode) or limit.mode, tonumber(windowUs) or limit.windowUs
  local hadLog = mode == MODE.log
  local bucket = {
    kind = Window, limit = limit, key = key, entries = KEYS[keyNumber + 1], exists = exists, changed = false,
    atUs = tonumber(atUs) or nowUs, lineUs = tonumber(lineUs) or 0,
    start = tonumber(start) or (limit.mode == MODE.sliding and floor(nowUs / cellUs(limit)) or 0),
    granted = tonumber(granted) or 0, refused = tonumber(refused) or 0, pause = Pause.of(closed, closedFrom),
    base = hadLog and tonumber(base) or 0, total = hadLog and tonumber(total) or 0, lastUs = hadLog and tonumber(lastUs) or 0,
    counts = counts and {} or Counts.blank(limit),
  }
  for count in string.gmatch(counts or '', '%d+') do
    bucket.counts[#bucket.counts + 1] = tonumber(count)
  end
  Pause.resolve(bucket, Call.pause)
  bucket.storedLineUs, bucket.storedRefused = bucket.lineUs, bucket.refused
  local storedAtUs, storedPauseEndUs = bucket.atUs, bucket.pauseEndUs
  local same = mode == limit.mode and windowUs == limit.windowUs and #bucket.counts == Counts.lengthFor(limit)
  if not exists then
    Drain.fillCold(bucket, limit)
  elseif not same then
    Drain.convert(bucket, limit, mode)
  elseif limit.mode == MODE.fixed and bucket.counts[1] > 0 then
    local carriedUs = Counts.carriedStartUs(limit, bucket.start)
    same, bucket.start = carriedUs == bucket.start, carriedUs
  end
  local emptyUs = Counts.emptyUs(bucket)
  bucket.storedExpiresUs = max(emptyUs, bucket.pause and bucket.pause.untilUs or 0) + C.LINE_GRACE_US
  Drain.toNow(bucket, limit)
  Line.open(bucket, usedOf(bucket) == 0, min(emptyUs, bucket.atUs))
  bucket.outdated = storedAtUs > bucket.atUs or not same
  bucket.current = exists and storedAtUs <= bucket.atUs and same and storedPauseEndUs <= storedAtUs
  return bucket
end

-- Cell by cell: within one, only the share of the oldest falls; at its end the next oldest begins to.
local function slidingWaitUs(bucket, cost)
  local limit = bucket.limit
  local length, cells, counts = cellUs(limit), limit.cells, bucket.counts
  local offset = bucket.atUs - bucket.start * length
  local sum = Counts.total(bucket) - counts[cells + 1]
  for later = 0, cells do
    local oldest, room = counts[cells - later + 1], limit.max - sum - cost
    if room >= 0 then
      local enter = oldest == 0 and 0 or max(0, length - floor((room * length) / oldest))
      return later * length + max(enter, later == 0 and offset or 0) - offset
    end
    sum = sum - (counts[cells - later] or 0)
  end
  return limit.windowUs + length - offset
end

-- From the bucket's own time until the cost fits.
local function fitsAfterUs(bucket, cost)
  local limit = bucket.limit
  local excess = usedOf(bucket) + cost - limit.max
  if excess <= 0 then
    return 0
  elseif limit.mode == MODE.fixed then
    return bucket.start + limit.windowUs - bucket.atUs
  elseif limit.mode == MODE.sliding then
    return slidingWaitUs(bucket, cost)
  end
  return Log.waitUs(bucket, excess)
end

-- From the bucket's own time until so much of the window is open again. After a wait for room what was used is no more.
local function opensAfterUs(bucket, cost, waitUs)
  local whole, pause = bucket.limit.max, bucket.laterPause
  local needed = min(whole, waitUs > 0 and cost or usedOf(bucket) + cost)
  return Pause.opened(whole, pause, bucket.atUs) < needed and Pause.whenOpened(needed, whole, pause) - bucket.atUs or 0
end

function Window.waitUs(bucket, cost, pausedUs)
  local waitUs = fitsAfterUs(bucket, cost)
  if bucket.laterPause then
    waitUs = max(waitUs, opensAfterUs(bucket, cost, waitUs))
  end
  return max(pausedUs, waitUs > 0 and bucket.atUs - nowUs + waitUs or 0)
end

function Window.lineAfterUs(bucket, cost, fromUs)
  return fromUs + ceil((cost * bucket.limit.windowUs) / bucket.limit.max)
end

function Window.canReserve()
  return true
end

function Window.countsAhead(bucket, startUs)
  local limit = bucket.limit
  if startUs <= bucket.atUs or limit.mode == MODE.log then
    return true
  elseif limit.mode == MODE.sliding then
    return floor(startUs / cellUs(limit)) == bucket.start
  elseif bucket.counts[1] > 0 then
    return startUs < bucket.start + limit.windowUs
  end
  return not limit.aligned or Counts.startUs(limit, startUs) == Counts.startUs(limit, bucket.atUs)
end

function Window.charge(bucket, cost, startUs)
  local limit = bucket.limit
  bucket.granted = bucket.granted + cost
  if limit.mode == MODE.log then
    Log.add(bucket, max(startUs, bucket.atUs, bucket.total > bucket.base and bucket.lastUs or 0), cost)
  else
    if limit.mode == MODE.fixed and bucket.counts[1] == 0 then
      bucket.start = Counts.startUs(limit, max(startUs, bucket.atUs))
    end
    bucket.counts[1] = bucket.counts[1] + cost
  end
  bucket.lineUs = bucket.openUs
  bucket.exists, bucket.changed = true, true
end

-- Takes tokens out of the count again. Returns whether all of them were there.
function Window.giveBack(bucket, startUs, cost)
  local limit, cell = bucket.limit, 0
  if limit.mode == MODE.log then
    return false
  elseif limit.mode == MODE.sliding then
    cell = bucket.start - floor(startUs / cellUs(limit))
  end
  if cell < 0 or cell > limit.cells or (limit.mode == MODE.fixed and startUs < bucket.start) then
    return false
  end
  local given = min(bucket.counts[cell + 1], cost)
  bucket.counts[cell + 1] = bucket.counts[cell + 1] - given
  bucket.changed = true
  return given == cost
end

function Window.settle(bucket, startUs, cost, actual)
  if actual > cost then
    Window.charge(bucket, actual - cost, bucket.atUs)
  else
    Window.giveBack(bucket, startUs, cost - actual)
  end
  bucket.changed = true
end

function Window.remaining(bucket)
  return max(0, Pause.opened(bucket.limit.max, bucket.laterPause, bucket.atUs) - usedOf(bucket))
end
Window.available = Window.remaining

function Window.effective(bucket)
  return bucket.limit.max
end

function Window.save(bucket)
  local limit = bucket.limit
  if not bucket.changed then
    return State.saveRefusals(bucket)
  end
  Log.takeOver(bucket)
  local counts = {}
  for index = 1, #bucket.counts do
    counts[index] = asText(bucket.counts[index])
  end
  Fields.set('start', bucket.start)
  Fields.setText('counts', table.concat(counts, ' '))
  Fields.set('mode', limit.mode)
  Fields.set('window', limit.windowUs)
  if limit.mode == MODE.log then
    redis.call('ZREMRANGEBYSCORE', bucket.entries, '-inf', asText(bucket.base))
    Fields.set('base', bucket.base)
    Fields.set('total', bucket.total)
    Fields.set('last', bucket.lastUs)
  end
  State.save(bucket, Window.expiresUs(bucket), limit.mode == MODE.log and bucket.entries or nil)
end

return Window
