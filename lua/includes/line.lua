--[[
  The line of deferred work; src/core/line.ts is the model and says why.

  A bucket has it twice: `line` as it is stored, and `open`, the same for who minds it: 0 if the work in it is not
  coming or is due.
]]
--- @include "gcra"
local LINE_GRACE_US = 1000000
local MAX_LINE_AHEAD_US = 315360000000000

-- `fullAt` is when the bucket was full, as it was stored.
local function openLine(bucket, fullAt)
  if bucket.line <= bucket.at or bucket.at - fullAt >= LINE_GRACE_US then
    bucket.open = 0
  else
    bucket.open = bucket.line
  end
end

local function joinLine(bucket, units, slot)
  bucket.line = min(slot + ceil(units / bucket.rate), bucket.at + MAX_LINE_AHEAD_US)
  bucket.open = bucket.line
  bucket.exists = true
  bucket.joined = true
end
