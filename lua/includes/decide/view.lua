--[[
  The buckets of a call, and those that the operation at hand meets; src/core/decide/view.ts is the model.

  The life of a bucket in a call. Its kind loads it and brings it to now: nothing is written by that. What is then decided changes
  the fields here; each bucket is saved once, at the end of the call.
    exists    there is state in Redis, or there will be: without any, a refusal is not counted.
    changed   all of its state is written. A grant, a settlement, a pause set it.
    current   what is stored still says the same as the bucket does now. A refusal that only moves the counter or the line
              then writes just these (state.lua); else a turn in the line sets `changed`.
    outdated  it was stored by a clock that was put right since, or under other limits: the next refusal sets `changed`, so that
              what was made of it is not made again at every call.
  What is under each name that begins with `stored` is what Redis has; under `seen`, what the request at hand saw.

  A kind is a table with these functions; those in brackets are not in all kinds.
    load, save, (saveTogether), expiresUs                       its buckets as they are kept
    waitUs, canReserve, (countsAhead), (staysExact)             may a request have it, now or later
    charge, (tell), (giveBack), (settle), (observe)              a grant and what comes after it
    (lineAfterUs), (passesLine), (patienceUs)                   the line
    (refused), (contends), (restate), (keepPlace), (wake)       what a refusal leaves
    (paused), (resumed), (stateNow)                             pauses
    remaining, available, effective                             what it looks like
  And reason, the number of the refusals of its own; reserves: it grants for later; hasQueue: it has a queue instead of a line.
]]
local Protocol = require 'protocol'
local Call = require 'call'
local Ask = require 'ask'
local input, nowUs = Call.input, Call.nowUs
local buckets, kinds, met, costs = {}, {}, {}, {}
local View = { buckets = met, costs = costs }

local function kindOf(number)
  local kind = kinds[number]
  if not kind then
    kind = Protocol.kind(number)
    kinds[number] = kind
  end
  return kind
end

-- Reads the limits and buckets of the call. Returns the position after them.
function View.load(at)
  local limits = {}
  local count = input[at]
  at = at + 1
  for index = 1, count do
    limits[index], at = Protocol.limit(input, at)
  end
  count = input[at]
  at = at + 1
  for index = 1, count do
    local beside, number = buckets[input[at + 4]], input[at + 5]
    local bucket = kindOf(input[at]).load(limits[input[at + 1]], input[at + 3], beside, number)
    bucket.attribute = input[at + 2]
    if beside and bucket.parent ~= beside then
      bucket.shared, bucket.registry = beside, KEYS[number]
    end
    buckets[index] = bucket
    at = at + 6
  end
  return at
end

function View.save()
  for index = 1, #buckets do
    local bucket = buckets[index]
    bucket.kind.save(bucket)
  end
  for _, kind in pairs(kinds) do
    if kind.saveTogether then
      kind.saveTogether()
    end
  end
end

function View.bucket(number)
  return buckets[number]
end

-- The bucket that a request meets instead of this one, where a limit has too many keys.
local function bucketFor(bucket)
  return bucket.shared and require('buckets/key-overflow').bucketFor(bucket) or bucket
end
View.bucketFor = bucketFor

-- Told of each change: whether a value has a bucket of its own depends on it.
function View.register(bucket)
  if bucket.shared then
    require('buckets/key-overflow').register(bucket)
  end
end

-- Finds the buckets that an operation meets: `count` of them in the input, `width` numbers each, a bucket's number and the cost first.
-- Returns the position after them.
function View.meet(position, count, width)
  for index = 1, count do
    local bucket = buckets[input[position]]
    met[index] = bucket.shared and bucketFor(bucket) or bucket
    costs[index] = input[position + 1]
    position = position + width
  end
  return position
end

-- Returns how long the bucket makes a request wait, from now, and how long of it for a pause. Sets `seenLineUs`, the line as this
-- request sees it.
function View.look(bucket, cost)
  local pausedUs = bucket.pauseEndUs > nowUs and bucket.pauseEndUs - nowUs or 0
  bucket.seenLineUs = bucket.openUs
  return bucket.kind.waitUs(bucket, cost, pausedUs), pausedUs
end

-- How long the line holds the request up.
function View.lineAheadUs(bucket)
  local passesLine = bucket.kind.passesLine
  if bucket.seenLineUs == 0 or Ask.returning or (passesLine and passesLine(bucket)) then
    return 0
  end
  return bucket.seenLineUs - nowUs
end

function View.stayExact(count, startUs)
  for index = 1, count do
    local bucket = met[index]
    local staysExact = bucket.kind.staysExact
    if staysExact and not staysExact(bucket, costs[index], startUs) then
      return false
    end
  end
  return true
end

-- Whether all buckets of the request make grants ahead.
function View.allCanReserve(count)
  for index = 1, count do
    if not met[index].kind.canReserve(met[index]) then
      return false
    end
  end
  return true
end

-- Takes the cost from a bucket. Returns what its kind has to tell of it.
function View.charge(bucket, cost, startUs)
  local told = bucket.kind.charge(bucket, cost, startUs)
  View.register(bucket)
  return told
end

return View
