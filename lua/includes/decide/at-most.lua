--[[
  atMost: takes as many whole tokens as there are, up to a number, from each bucket as many; a fraction stays where it is.
  src/core/decide/at-most.ts is the model.
]]
local View = require 'decide/view'
local Call = require 'call'
local Ask = require 'ask'
local put = require('reply').put
local input, met = Call.input, View.buckets
local min = math.min

local function atMost(position)
  local available, count = input[position], input[position + 2]
  Ask.priority, Ask.returning, Ask.holder = input[position + 1], false, ''
  local after = View.meet(position + 3, count, 1)
  for index = 1, count do
    local bucket = met[index]
    local waitUs, pausedUs = View.look(bucket, 1)
    local isHeldUp = pausedUs > 0 or View.lineAheadUs(bucket) > 0
    available = min(available, isHeldUp and 0 or bucket.kind.available(bucket, waitUs))
  end
  put(available)
  if available >= 1 then
    for index = 1, count do
      View.charge(met[index], available, Call.nowUs)
    end
  end
  return after
end

return { atMost = atMost }
