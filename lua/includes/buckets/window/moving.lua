--[[
  What time, changes of the limits and lost data make of a window; src/core/buckets/window/window.ts is the model and says why. Reads `now`
  and `coldAt`.
]]
--- @include "buckets/rate/gcra"
--- @include "buckets/window/counts"
--- @include "buckets/window/log"

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

-- Counts of another mode, length or number of cells: all of them as if they had been granted at the latest time seen.
local function convertWindow(bucket, limit, mode)
  local used = mode == LOG and bucket.total - bucket.base or sumOf(bucket.counts)
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
    evictEntries(bucket)
  end
end
