--[[
  force: charges whatever the buckets hold, from now on; who comes after waits until it has drained. All or, if that
  would leave the exact range, none. Slots are leased even if there are none. src/core/decide/force.ts is the model.
]]
local View = require 'decide/view'
local put = require('reply').put
local input, met, costs = require('call').input, View.buckets, View.costs

local function force(position)
  local count = input[position]
  local after = View.meet(position + 1, count, 2)
  for index = 1, count do
    View.look(met[index], costs[index])
  end
  if not View.stayExact(count, 0) then
    put(0)
    return after
  end
  put(1)
  for index = 1, count do
    local bucket = met[index]
    local told = View.charge(bucket, costs[index], 0)
    if bucket.kind.tell then
      bucket.kind.tell(bucket, told, 0)
    end
  end
  return after
end

return { force = force }
