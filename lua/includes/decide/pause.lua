--[[
  pause and resume of single buckets; src/core/decide/pause.ts is the model. pause-governor.lua does it for the whole governor.
]]
local View = require 'decide/view'
local Pause = require 'buckets/pause'
local Call = require 'call'
local C = require 'constants'
local put = require('reply').put
local input, words, nowUs = Call.input, Call.words, Call.nowUs
local max, min = math.max, math.min

local function setPause(bucket, newPause)
  local kind = bucket.kind
  bucket.lineUs = bucket.openUs
  if kind.stateNow then
    kind.stateNow(bucket)
  end
  bucket.pause = newPause
  Pause.resolve(bucket, Call.pause)
  bucket.exists, bucket.changed = true, true
  View.register(bucket)
end

local function tell(text)
  redis.pcall('PUBLISH', Call.eventsChannel, text)
  put(1)
end

local function pause(position)
  local untilUs, count = nowUs + min(input[position], C.MAX_AHEAD_US), input[position + 2]
  for at = position + 3, position + 2 + count do
    local bucket = View.bucketFor(View.bucket(input[at]))
    if bucket.kind.paused then
      bucket.kind.paused(bucket)
    end
    setPause(bucket, Pause.longer(bucket.pause, nowUs, untilUs))
  end
  tell(words[input[position + 1]])
  return position + 3 + count
end

local function resume(position)
  local count = input[position + 1]
  for at = position + 2, position + 1 + count do
    local bucket = View.bucketFor(View.bucket(input[at]))
    local before = bucket.pause
    if before and before.untilUs > nowUs then
      setPause(bucket, { fromUs = before.fromUs, untilUs = max(nowUs, bucket.atUs) })
      if bucket.kind.resumed then
        bucket.kind.resumed(bucket)
      end
    end
  end
  tell(words[input[position]])
  return position + 2 + count
end

return { pause = pause, resume = resume }
