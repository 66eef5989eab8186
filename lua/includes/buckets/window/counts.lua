--[[
  The counts of a window, and when it begins and ends; src/core/buckets/window/counts.ts is the model and says why. The fields of a
  bucket are those of its hash: index.lua.
]]
local MODE = require 'modes'
local Counts = {}

local ceil, floor = math.ceil, math.floor

local function cellUs(limit)
  return limit.windowUs / limit.cells
end
Counts.cellUs = cellUs

function Counts.startUs(limit, us)
  return limit.aligned and floor(us / limit.windowUs) * limit.windowUs or us
end

-- What began off the clock counts until the window by the clock ends in which it would have been forgotten.
function Counts.carriedStartUs(limit, us)
  return limit.aligned and ceil(us / limit.windowUs) * limit.windowUs or us
end

function Counts.lengthFor(limit)
  return limit.mode == MODE.sliding and limit.cells + 1 or limit.mode == MODE.fixed and 1 or 0
end

function Counts.blank(limit)
  local counts = {}
  for index = 1, Counts.lengthFor(limit) do
    counts[index] = 0
  end
  return counts
end

function Counts.sum(counts)
  local sum = 0
  for index = 1, #counts do
    sum = sum + counts[index]
  end
  return sum
end

local function total(bucket)
  return bucket.limit.mode == MODE.log and bucket.total or Counts.sum(bucket.counts)
end
Counts.total = total

function Counts.used(bucket)
  local limit = bucket.limit
  if limit.mode == MODE.log then
    return bucket.total - bucket.base
  elseif limit.mode == MODE.fixed then
    return bucket.counts[1]
  end
  local oldest, cell = bucket.counts[limit.cells + 1], cellUs(limit)
  local leftUs = cell - (bucket.atUs - bucket.start * cell)
  return total(bucket) - oldest + ceil((oldest * leftUs) / cell)
end

function Counts.emptyUs(bucket)
  local limit = bucket.limit
  if total(bucket) - bucket.base == 0 then
    return bucket.atUs
  elseif limit.mode == MODE.fixed then
    return bucket.start + limit.windowUs
  elseif limit.mode == MODE.log then
    return bucket.lastUs + limit.windowUs
  end
  return (bucket.start + limit.cells + 1) * cellUs(limit)
end

return Counts
