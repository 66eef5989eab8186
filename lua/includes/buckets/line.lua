--[[
  The line of deferred work; src/core/buckets/line.ts is the model and says why.

  A bucket has it twice: `line` as it is stored, and `open`, the same for who minds it: 0 if the work in it is not
  coming or is due.
]]
--- @include "buckets/rate/gcra"
local LINE_GRACE_US = 1000000

-- `full` is whether it is full now, `fullAt` when it came to be, as it was stored.
local function openLine(bucket, full, fullAt)
  if bucket.line <= bucket.at or (full and bucket.at - fullAt >= LINE_GRACE_US) then
    bucket.open = 0
  else
    bucket.open = bucket.line
  end
end

-- Its line ends at `us` from now on.
local function joinLine(bucket, us)
  bucket.line = min(us, bucket.at + MAX_AHEAD_US)
  bucket.open = bucket.line
  bucket.refused = bucket.refused + 1
  bucket.exists = true
  bucket.joined = true
end
