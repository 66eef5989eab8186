--[[
  A limit that follows what the downstream can take; src/core/buckets/adaptive.ts is the model and says why. The same operations
  in the same order on the same doubles, so that both round alike.

  Works on a state in place: value, bad (thousandths), climbUs, cutUs, riseUs, used (tokens or slots), busy (0, 1), windowUs,
  calls, failed, latencySumUs, usualNs, lookUs, lookFrom (thousandths). A rule is min, max (thousandths), gradient (true,
  false), latencyUs, errorPermille (0: not looked at), periodUs (0: the limit is of slots).
]]
local C = require 'constants'
local nowUs = require('call').nowUs
local asText = require('numbers').asText
local Fields = require 'fields'
local Adaptive = {}
local floor, max, min, sqrt = math.floor, math.max, math.min, math.sqrt
-- The order in which they stand in their one field of the bucket's hash.
local FIELDS = {
  'value', 'bad', 'climbUs', 'cutUs', 'riseUs', 'used', 'busy', 'windowUs', 'calls', 'failed', 'latencySumUs', 'usualNs',
  'lookUs', 'lookFrom',
}

-- nil for a text that is not a state.
function Adaptive.fromText(text)
  local state, index = {}, 0
  for number in string.gmatch(text, '%d+') do
    index = index + 1
    state[FIELDS[index] or index] = tonumber(number)
  end
  return index == #FIELDS and state or nil
end

-- Writes what the bucket has of it, if it has or had any.
function Adaptive.save(bucket)
  local numbers = {}
  if not bucket.adaptive then
    return Fields.delete 'adaptive'
  end
  for index = 1, #FIELDS do
    numbers[index] = asText(bucket.adaptive[FIELDS[index]])
  end
  Fields.setText('adaptive', table.concat(numbers, ' '))
end

local function withinRule(rule, value)
  return min(rule.max, max(rule.min, value))
end

-- `initial` in thousandths.
function Adaptive.begun(rule, initial)
  local value = withinRule(rule, initial)
  return {
    value = value, bad = value, climbUs = C.RETURN_US, cutUs = 0, riseUs = nowUs, used = 0, busy = 0,
    windowUs = nowUs, calls = 0, failed = 0, latencySumUs = 0, usualNs = 0, lookUs = 0, lookFrom = 0,
  }
end

local function climb(state, rule, us)
  if state.value < rule.max then
    state.climbUs = min(C.MAX_CLIMB_US, state.climbUs + us)
  end
  local turns = (state.climbUs - C.RETURN_US) / C.RETURN_US
  local level = floor(state.bad + (state.bad / 10) * turns * turns * turns)
  state.value = max(state.value, withinRule(rule, level))
end

-- Before any of those below, whenever the limit is touched. `periodUs` 0: the limit is of slots.
function Adaptive.rise(state, rule, periodUs)
  state.value = withinRule(rule, state.value)
  if state.riseUs - nowUs > C.MAX_CLOCK_STEP_US then
    state.cutUs = min(state.cutUs, nowUs)
    state.riseUs = nowUs
    state.used = 0
    state.windowUs = min(state.windowUs, nowUs)
    state.lookUs = min(state.lookUs, nowUs + C.LOOK_US)
    return
  end
  local elapsed = nowUs - state.riseUs
  if elapsed < C.USE_US then
    return
  end
  local allowed = periodUs == 0 and state.value or (state.value * elapsed) / periodUs
  if periodUs > 0 and allowed < C.USE_TOKENS * 1000 then
    return
  end
  local busy = state.used * 2000 >= allowed
  if busy and not rule.gradient then
    local step = periodUs == 0 and C.MAX_STEP_US or min(C.MAX_STEP_US, state.used * C.TOKEN_STEP_US)
    climb(state, rule, min(elapsed, step))
  end
  state.busy = busy and 1 or 0
  state.riseUs = nowUs
  state.used = 0
end

function Adaptive.use(state, tokens)
  state.used = min(C.MOST, state.used + tokens)
end

function Adaptive.hold(state, slots)
  state.used = max(state.used, slots)
end

-- Only calls granted from now on count.
local function countSince(state)
  state.cutUs = max(state.cutUs, nowUs)
  state.riseUs = max(state.riseUs, nowUs)
  state.used, state.busy = 0, 0
  state.windowUs, state.calls, state.failed, state.latencySumUs = nowUs, 0, 0, 0
end

local function cut(state, rule, keepsPermille)
  local least = nowUs - state.cutUs < C.NEXT_CUT_US and C.NEXT_CUT_KEEPS or C.LEAST_CUT_KEEPS
  local keeps = min(least, max(C.MOST_CUT_KEEPS, keepsPermille))
  state.value = withinRule(rule, floor((state.value * keeps) / 1000))
  state.bad = floor((state.value * 1000) / C.LEAST_CUT_KEEPS)
  state.climbUs, state.lookFrom = 0, 0
  countSince(state)
end

local function follow(state, rule, mean)
  local value, usual = state.value, state.usualNs
  if usual == 0 then
    state.usualNs, state.lookUs = mean, nowUs + C.LOOK_SOON_US
  elseif state.lookFrom > 0 then
    local lower = mean * 11 <= usual * 10
    state.usualNs = lower and mean or floor((usual + mean) / 2)
    state.lookUs = nowUs + (lower and C.LOOK_SOON_US or C.LOOK_US)
    state.value, state.lookFrom = withinRule(rule, state.lookFrom), 0
  elseif state.busy == 0 then
    return
  elseif nowUs >= state.lookUs then
    state.value, state.lookFrom = withinRule(rule, floor(value / 2)), value
    countSince(state)
  else
    if mean < usual then
      state.usualNs = usual - floor((usual - mean) / 8)
    end
    local gradient = min(1000, max(C.MOST_CUT_KEEPS, floor((state.usualNs * C.TOLERANCE) / mean)))
    local aim = floor((value * gradient) / 1000 + sqrt(value * 1000))
    state.value = withinRule(rule, value + floor((aim - value) / 5))
  end
end

local function judge(state, rule)
  local calls, failed, latencySumUs = state.calls, state.failed, state.latencySumUs
  local keeps = 1000
  if rule.errorPermille > 0 and failed >= C.LEAST_FAILED and failed * 1000 > rule.errorPermille * calls then
    keeps = min(C.LEAST_CUT_KEEPS, 1000 - floor((failed * 1000) / calls))
  end
  if rule.latencyUs > 0 and latencySumUs > rule.latencyUs * calls then
    keeps = min(keeps, C.LEAST_CUT_KEEPS, floor((rule.latencyUs * calls * 1000) / latencySumUs))
  end
  if keeps < 1000 then
    return cut(state, rule, keeps)
  end
  state.windowUs, state.calls, state.failed, state.latencySumUs = nowUs, 0, 0, 0
  if rule.gradient then
    follow(state, rule, min(C.MOST, max(1, floor((latencySumUs * 1000) / calls))))
  end
end

function Adaptive.observe(state, rule, started, calls, throttled, failed, latencySumUs)
  if min(started, nowUs) < state.cutUs + C.SETTLE_US then
    return
  end
  if throttled > 0 then
    return cut(state, rule, 1000 - floor((throttled * 1000) / max(C.SHARE_OF_AT_LEAST, calls)))
  end
  state.calls = min(C.MOST, state.calls + calls)
  state.failed = min(C.MOST, state.failed + failed)
  state.latencySumUs = min(C.MOST, state.latencySumUs + latencySumUs)
  if state.calls >= C.JUDGED_CALLS and nowUs - state.windowUs >= C.JUDGED_US then
    judge(state, rule)
  end
end

return Adaptive
