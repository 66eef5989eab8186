--[[
  What time, changes of the limits and lost data make of a window; src/core/buckets/window/drain.ts is the model and says why.
]]
local Counts = require 'buckets/window/counts'
local Log = require 'buckets/window/log'
local Pause = require 'buckets/pause'
local Call = require 'call'
local C = require 'constants'
local MODE = require 'modes'
local movedBy = require('numbers').movedBy
local Drain = {}
local nowUs, coldAtUs = Call.nowUs, Call.coldAtUs

local cellUs = Counts.cellUs
local floor, max, min = math.floor, math.max, math.min

-- Without state a window is empty; or it was full at the cold start, which may lie ahead.
function Drain.fillCold(bucket, limit)
  bucket.converted = true
  if coldAtUs == 0 or coldAtUs + limit.windowUs <= nowUs then
    return
  end
  if limit.mode == MODE.log then
    bucket.total, bucket.lastUs, bucket.loneUs = limit.max, coldAtUs, coldAtUs
  else
    bucket.counts[1] = limit.max
    bucket.start = limit.mode == MODE.fixed and Counts.startUs(limit, coldAtUs) or floor(coldAtUs / cellUs(limit))
  end
end

-- Counts of another mode, length or number of cells: all of them as if they had been granted at the latest time seen.
function Drain.convert(bucket, limit, storedMode)
  local used = storedMode == MODE.log and bucket.total - bucket.base or Counts.sum(bucket.counts)
  bucket.converted = true
  bucket.counts, bucket.base, bucket.total, bucket.lastUs = Counts.blank(limit), 0, 0, 0
  bucket.start = limit.mode == MODE.sliding and floor(bucket.atUs / cellUs(limit)) or 0
  if used > 0 then
    if limit.mode == MODE.log then
      bucket.total, bucket.lastUs, bucket.loneUs = used, bucket.atUs, bucket.atUs
    else
      bucket.counts[1] = used
    end
    if limit.mode == MODE.fixed then
      bucket.start = Counts.carriedStartUs(limit, bucket.atUs)
    end
  end
end

local function stepBack(bucket, limit)
  local stepUs = bucket.atUs - nowUs
  bucket.atUs = nowUs
  bucket.lineUs = movedBy(bucket.lineUs, stepUs)
  bucket.pause = Pause.moved(bucket.pause, stepUs)
  Pause.resolve(bucket, Call.pause)
  if limit.mode == MODE.fixed then
    bucket.start = Counts.startUs(limit, movedBy(bucket.start, stepUs))
  elseif limit.mode == MODE.sliding then
    bucket.start = floor(nowUs / cellUs(limit))
  else
    bucket.stepUs, bucket.lastUs = stepUs, max(0, bucket.lastUs - stepUs)
    bucket.loneUs = bucket.loneUs and max(0, bucket.loneUs - stepUs)
  end
end

function Drain.toNow(bucket, limit)
  if bucket.atUs - nowUs > C.MAX_CLOCK_STEP_US then
    stepBack(bucket, limit)
  end
  bucket.atUs = max(nowUs, bucket.atUs)
  if limit.mode == MODE.fixed then
    if bucket.counts[1] > 0 and bucket.atUs >= bucket.start + limit.windowUs then
      bucket.counts[1] = 0
    end
  elseif limit.mode == MODE.sliding then
    local cell = floor(bucket.atUs / cellUs(limit))
    local passed = min(cell - bucket.start, limit.cells + 1)
    if passed > 0 then
      for index = limit.cells + 1, 1, -1 do
        bucket.counts[index] = bucket.counts[index - passed] or 0
      end
      bucket.start = cell
    end
  else
    Log.evict(bucket)
  end
end

return Drain
