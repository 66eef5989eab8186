--[[
  A limit that follows what the downstream can take; src/core/buckets/adaptive.ts is the model and says why. The same operations
  in the same order on the same doubles, so that both round alike. Reads `now`.

  Works on a state in place: value, bad (thousandths), climbUs, cutUs, riseUs, used (tokens or slots), busy (0, 1), windowUs,
  calls, failed, latencySumUs, usualNs, lookUs, lookFrom (thousandths). A rule is min, max (thousandths), gradient (true,
  false), latencyUs, errorPermille (0: not looked at).
]]
--- @include "buckets/rate/gcra"
local adaptiveBegun, adaptiveRise, adaptiveUse, adaptiveHold, adaptiveObserve
-- Lua allows 200 locals in one function: what only this part needs stays in its block.
do
  local LEAST_CUT_KEEPS, MOST_CUT_KEEPS = 900, 500
  local NEXT_CUT_KEEPS, NEXT_CUT_US = 850, 500000
  local SHARE_OF_AT_LEAST = 20
  local SETTLE_US = 100000
  local RETURN_US, MAX_CLIMB_US = 2500000, 60000000
  local USE_US, USE_TOKENS = 250000, 4
  local MAX_STEP_US, TOKEN_STEP_US = 1000000, 50000
  local JUDGED_CALLS, JUDGED_US, LEAST_FAILED = 20, 500000, 2
  local TOLERANCE, LOOK_US, LOOK_SOON_US = 1250, 30000000, 5000000
  local MOST = 4503599627370496 -- 2^52

  local function withinRule(rule, value)
    return min(rule.max, max(rule.min, value))
  end

  -- `initial` in thousandths.
  function adaptiveBegun(rule, initial)
    local value = withinRule(rule, initial)
    return {
      value = value, bad = value, climbUs = RETURN_US, cutUs = 0, riseUs = now, used = 0, busy = 0,
      windowUs = now, calls = 0, failed = 0, latencySumUs = 0, usualNs = 0, lookUs = 0, lookFrom = 0,
    }
  end

  local function climb(state, rule, us)
    if state.value < rule.max then
      state.climbUs = min(MAX_CLIMB_US, state.climbUs + us)
    end
    local turns = (state.climbUs - RETURN_US) / RETURN_US
    local level = floor(state.bad + (state.bad / 10) * turns * turns * turns)
    state.value = max(state.value, withinRule(rule, level))
  end

  -- Before any of those below, whenever the limit is touched. `period` in microseconds; 0: the limit is of slots.
  function adaptiveRise(state, rule, period)
    state.value = withinRule(rule, state.value)
    if state.riseUs - now > MAX_CLOCK_STEP_US then
      state.cutUs = min(state.cutUs, now)
      state.riseUs = now
      state.used = 0
      state.windowUs = min(state.windowUs, now)
      state.lookUs = min(state.lookUs, now + LOOK_US)
      return
    end
    local elapsed = now - state.riseUs
    if elapsed < USE_US then
      return
    end
    local allowed = period == 0 and state.value or (state.value * elapsed) / period
    if period > 0 and allowed < USE_TOKENS * 1000 then
      return
    end
    local busy = state.used * 2000 >= allowed
    if busy and not rule.gradient then
      local step = period == 0 and MAX_STEP_US or min(MAX_STEP_US, state.used * TOKEN_STEP_US)
      climb(state, rule, min(elapsed, step))
    end
    state.busy = busy and 1 or 0
    state.riseUs = now
    state.used = 0
  end

  function adaptiveUse(state, tokens)
    state.used = min(MOST, state.used + tokens)
  end

  function adaptiveHold(state, slots)
    state.used = max(state.used, slots)
  end

  -- Only calls granted from now on count.
  local function countSince(state)
    state.cutUs = max(state.cutUs, now)
    state.riseUs = max(state.riseUs, now)
    state.used, state.busy = 0, 0
    state.windowUs, state.calls, state.failed, state.latencySumUs = now, 0, 0, 0
  end

  local function cut(state, rule, keepsPermille)
    local least = now - state.cutUs < NEXT_CUT_US and NEXT_CUT_KEEPS or LEAST_CUT_KEEPS
    local keeps = min(least, max(MOST_CUT_KEEPS, keepsPermille))
    state.value = withinRule(rule, floor((state.value * keeps) / 1000))
    state.bad = floor((state.value * 1000) / LEAST_CUT_KEEPS)
    state.climbUs, state.lookFrom = 0, 0
    countSince(state)
  end

  local function follow(state, rule, mean)
    local value, usual = state.value, state.usualNs
    if usual == 0 then
      state.usualNs, state.lookUs = mean, now + LOOK_SOON_US
    elseif state.lookFrom > 0 then
      local lower = mean * 11 <= usual * 10
      state.usualNs = lower and mean or floor((usual + mean) / 2)
      state.lookUs = now + (lower and LOOK_SOON_US or LOOK_US)
      state.value, state.lookFrom = withinRule(rule, state.lookFrom), 0
    elseif state.busy == 0 then
      return
    elseif now >= state.lookUs then
      state.value, state.lookFrom = withinRule(rule, floor(value / 2)), value
      countSince(state)
    else
      if mean < usual then
        state.usualNs = usual - floor((usual - mean) / 8)
      end
      local gradient = min(1000, max(MOST_CUT_KEEPS, floor((state.usualNs * TOLERANCE) / mean)))
      local aim = floor((value * gradient) / 1000 + math.sqrt(value * 1000))
      state.value = withinRule(rule, value + floor((aim - value) / 5))
    end
  end

  local function judge(state, rule)
    local calls, failed, latencySum = state.calls, state.failed, state.latencySumUs
    local keeps = 1000
    if rule.errorPermille > 0 and failed >= LEAST_FAILED and failed * 1000 > rule.errorPermille * calls then
      keeps = min(LEAST_CUT_KEEPS, 1000 - floor((failed * 1000) / calls))
    end
    if rule.latencyUs > 0 and latencySum > rule.latencyUs * calls then
      keeps = min(keeps, LEAST_CUT_KEEPS, floor((rule.latencyUs * calls * 1000) / latencySum))
    end
    if keeps < 1000 then
      return cut(state, rule, keeps)
    end
    state.windowUs, state.calls, state.failed, state.latencySumUs = now, 0, 0, 0
    if rule.gradient then
      follow(state, rule, min(MOST, max(1, floor((latencySum * 1000) / calls))))
    end
  end

  function adaptiveObserve(state, rule, started, calls, throttled, failed, latencySum)
    if min(started, now) < state.cutUs + SETTLE_US then
      return
    end
    if throttled > 0 then
      return cut(state, rule, 1000 - floor((throttled * 1000) / max(SHARE_OF_AT_LEAST, calls)))
    end
    state.calls = min(MOST, state.calls + calls)
    state.failed = min(MOST, state.failed + failed)
    state.latencySumUs = min(MOST, state.latencySumUs + latencySum)
    if state.calls >= JUDGED_CALLS and now - state.windowUs >= JUDGED_US then
      judge(state, rule)
    end
  end
end
