--[[
  The line of deferred work; src/core/buckets/line.ts is the model and says why.

  A bucket has it twice: `lineUs` as it is stored, and `openUs`, the same for a request that minds it: 0 if the work in it is
  not coming or is due.
]]
local C = require 'constants'
local Line = {}
local min = math.min

-- `isFull`: whether the bucket is full now; `fullSinceUs`: since when, as it was stored.
function Line.open(bucket, isFull, fullSinceUs)
  if bucket.lineUs <= bucket.atUs or (isFull and bucket.atUs - fullSinceUs >= C.LINE_GRACE_US) then
    bucket.openUs = 0
  else
    bucket.openUs = bucket.lineUs
  end
end

-- The line ends at `us` from now on.
function Line.join(bucket, us)
  bucket.lineUs = min(us, bucket.atUs + C.MAX_AHEAD_US)
  bucket.openUs = bucket.lineUs
  bucket.refused = bucket.refused + 1
  bucket.exists = true
end

return Line
