--[[
  The penalty of a bucket that refuses for long: it drains at a share of its rate for a time; src/core/buckets/rate/penalty.ts is
  the model. State: `refusingSinceUs`, since when it has refused without a break; `penaltyUntilUs`. 0: not.
]]
local Debt = require 'buckets/rate/debt'
local nowUs = require('call').nowUs
local Penalty = {}
local floor, max = math.floor, math.max

function Penalty.reduced(rule, rate)
  return max(1, floor((rate * rule.permille) / 1000))
end

-- A request was refused. Returns whether a penalty begins with it.
function Penalty.refused(bucket)
  local rule = bucket.limit.penalty
  if bucket.penaltyUntilUs > bucket.atUs then
    return false
  end
  if bucket.refusingSinceUs == 0 then
    bucket.refusingSinceUs = nowUs
  end
  if nowUs - bucket.refusingSinceUs < rule.afterUs then
    return false
  end
  bucket.refusingSinceUs = 0
  bucket.penaltyUntilUs = nowUs + rule.forUs
  Debt.changeRate(bucket, Penalty.reduced(rule, bucket.rate))
  bucket.changed = true
  return true
end

return Penalty
