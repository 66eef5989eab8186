--[[
  peek: what each bucket looks like to a request; takes nothing, and no turn in a line. src/core/decide/peek.ts is the model.
]]
local View = require 'decide/view'
local Call = require 'call'
local Ask = require 'ask'
local put = require('reply').put
local input, met, costs = Call.input, View.buckets, View.costs

local function peek(position)
  local count = input[position + 1]
  Ask.priority, Ask.holder = input[position], ''
  local after = View.meet(position + 2, count, 2)
  for index = 1, count do
    local bucket = met[index]
    local waitUs, pausedUs = View.look(bucket, costs[index])
    put(pausedUs > 0 and 0 or bucket.kind.remaining(bucket))
    put(waitUs)
    put(bucket.seenLineUs == 0 and 0 or bucket.seenLineUs - Call.nowUs)
    put(pausedUs)
    put(bucket.granted)
    put(bucket.refused)
    put(bucket.kind.effective(bucket))
  end
  return after
end

return { peek = peek }
