--[[
  The counts of a window, and when it begins and ends; src/core/buckets/window/window.ts is the model and says why. The fields of a bucket
  are those of its hash: window.lua.
]]
--- @include "buckets/rate/gcra"
--- @include "buckets/line"
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

local function sumOf(counts)
  local sum = 0
  for index = 1, #counts do
    sum = sum + counts[index]
  end
  return sum
end

local function totalOf(bucket)
  return bucket.limit.mode == LOG and bucket.total or sumOf(bucket.counts)
end

local function usedOf(bucket)
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

local function windowRest(bucket)
  return max(windowEmptyAt(bucket), bucket.closed) + LINE_GRACE_US
end
