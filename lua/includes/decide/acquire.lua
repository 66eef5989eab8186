--[[
  acquire: all buckets of a request are charged or none is; src/core/decide/acquire.ts is the model and says why. It makes no table:
  a call decides hundreds of these.
]]
local View = require 'decide/view'
local Call = require 'call'
local Ask = require 'ask'
local REASON = require 'reasons'
local put = require('reply').put
local input, nowUs, met, costs = Call.input, Call.nowUs, View.buckets, View.costs
local look, lineAheadUs, charge, stayExact = View.look, View.lineAheadUs, View.charge, View.stayExact

-- The number of the demand for which the field is longest; of equals one whose limit all requests meet, since it may reserve.
local function longest(count, field)
  local found = 1
  for index = 2, count do
    local moreUs = met[index][field] - met[found][field]
    if moreUs > 0 or (moreUs == 0 and met[found].attribute > 0 and met[index].attribute == 0) then
      found = index
    end
  end
  return found
end

-- A queue for slots is joined only when nothing else is in the way.
local function bindingOf(count)
  local others = longest(count, 'seenEarlyUs')
  return met[others].seenEarlyUs > 0 and others or longest(count, 'seenWaitUs')
end

-- A request reserves only while no limit in it is wider than the one that makes it wait.
local function mayReserve(count, binding, startUs)
  if not binding.kind.reserves then
    return false
  end
  for index = 1, count do
    local bucket = met[index]
    local kind = bucket.kind
    if binding.attribute > 0 and bucket.attribute ~= binding.attribute then
      return false
    elseif bucket ~= binding and not kind.reserves and bucket.seenWaitUs > 0 then
      return false
    elseif not kind.canReserve(bucket) or (kind.countsAhead and not kind.countsAhead(bucket, startUs)) then
      return false
    end
  end
  return true
end

-- A request that would wait too long goes into the line of its own share of the limit, if there is one.
local function ownLineOf(count, binding)
  local share = binding < count and met[binding + 1]
  if share and share.parent == met[binding] and Ask.maxTurnUs > 0 and View.allCanReserve(count) then
    share.seenWaitUs = met[binding].seenWaitUs
    return binding + 1
  end
  return binding
end

local function grant(count, waitUs)
  local startUs = nowUs + waitUs
  put(1 + waitUs)
  for index = 1, count do
    local bucket = met[index]
    local kind, told = bucket.kind, charge(bucket, costs[index], startUs)
    if kind.wake then
      kind.wake(bucket)
    end
    if kind.tell then
      kind.tell(bucket, told, waitUs)
    end
  end
end

-- Returns the number of the demand that refuses, and the reason; nothing and the wait if none does.
local function judge(count)
  local longestWaitUs, isPaused, hasLine = 0, false, false
  for index = 1, count do
    local bucket = met[index]
    local waitUs, pausedUs = look(bucket, costs[index])
    local aheadUs = bucket.seenLineUs == 0 and 0 or lineAheadUs(bucket)
    bucket.seenWaitUs, bucket.seenPausedUs, bucket.seenAheadUs = waitUs, pausedUs, aheadUs
    bucket.seenEarlyUs = bucket.kind.hasQueue and 0 or waitUs
    if waitUs > longestWaitUs then
      longestWaitUs = waitUs
    end
    isPaused, hasLine = isPaused or pausedUs > 0, hasLine or aheadUs > 0
  end
  if isPaused then
    return longest(count, 'seenPausedUs'), REASON.paused
  elseif hasLine then
    return longest(count, 'seenAheadUs'), REASON.line
  elseif longestWaitUs == 0 then
    if stayExact(count, nowUs) then
      return nil, 0
    end
    return bindingOf(count), REASON.horizon
  end
  local binding = bindingOf(count)
  local waitUs = met[binding].seenWaitUs
  if waitUs > Ask.maxWaitUs or not mayReserve(count, met[binding], nowUs + waitUs) then
    local refusing = ownLineOf(count, binding)
    return refusing, met[refusing].kind.reason
  elseif not stayExact(count, nowUs + waitUs) then
    return binding, REASON.horizon
  end
  return nil, waitUs
end

local function acquire(position)
  local count = input[position]
  local after = View.meet(position + 1, count, 2)
  local refusing, reasonOrWaitUs = judge(count)
  if refusing then
    require('decide/refuse')(count, refusing, reasonOrWaitUs)
  else
    grant(count, reasonOrWaitUs)
  end
  return after
end

return { acquire = acquire }
