--[[
  What comes after a grant: cancel takes it back before its start, settle corrects its cost, release, renew and leave give its slots
  back or keep them, report tells adaptive limits what calls came to. src/core/decide/give-back.ts is the model.
]]
local View = require 'decide/view'
local Call = require 'call'
local put = require('reply').put
local input, words, nowUs = Call.input, Call.words, Call.nowUs

-- The bucket in whose own name there is state that still says something; else there is nothing to give back to.
local function stillThere(bucket)
  return bucket.exists and bucket.kind.expiresUs(bucket) > nowUs
end

local function written(bucket)
  bucket.lineUs = bucket.openUs
  View.register(bucket)
end

local function cancel(position)
  local startUs, count = input[position], input[position + 1]
  local allGiven = nowUs < startUs and count > 0
  local after = position + 2 + 4 * count
  if allGiven then
    for at = position + 2, after - 1, 4 do
      local bucket, isGiven = View.bucket(input[at]), false
      if bucket.kind.giveBack and stillThere(bucket) then
        bucket = View.bucketFor(bucket)
        isGiven = bucket.kind.giveBack(bucket, startUs, input[at + 1], input[at + 2], input[at + 3])
      end
      if isGiven then
        written(bucket)
      end
      allGiven = isGiven and allGiven
    end
  end
  put(allGiven and 1 or 0)
  return after
end

local function settle(position)
  local startUs, givesBack, count = input[position], input[position + 1] == 1, input[position + 2]
  local after = position + 3 + 3 * count
  for at = position + 3, after - 1, 3 do
    local bucket, cost, actual = View.bucket(input[at]), input[at + 1], input[at + 2]
    if actual > cost or (actual < cost and givesBack and stillThere(bucket)) then
      bucket = View.bucketFor(bucket)
      bucket.kind.settle(bucket, startUs, cost, actual)
      bucket.exists = true
      written(bucket)
    end
  end
  put(1)
  return after
end

local function release(position)
  local bucket = View.bucket(input[position])
  put(bucket.kind.release(bucket, words[input[position + 1]], input[position + 2]) and 1 or 0)
  return position + 3
end

local function renew(position)
  local bucket = View.bucket(input[position])
  put(bucket.kind.renew(bucket, words[input[position + 1]], input[position + 2], input[position + 3]) and 1 or 0)
  return position + 4
end

local function leave(position)
  local holder, count = words[input[position]], input[position + 1]
  for at = position + 2, position + 1 + count do
    local bucket = View.bucket(input[at])
    bucket.kind.leave(bucket, holder)
  end
  put(1)
  return position + 2 + count
end

local function report(position)
  local startedUs, calls, throttled, failed, latencySumUs, count = unpack(input, position, position + 5)
  for at = position + 6, position + 5 + count do
    local bucket = View.bucketFor(View.bucket(input[at]))
    bucket.kind.observe(bucket, startedUs, calls, throttled, failed, latencySumUs)
    bucket.exists, bucket.changed = true, true
    written(bucket)
    if bucket.kind.wake then
      bucket.kind.wake(bucket)
    end
  end
  put(1)
  return position + 6 + count
end

return { cancel = cancel, settle = settle, release = release, renew = renew, leave = leave, report = report }
