--[[
  decide: run a list of operations on one governor's buckets, in order, at one moment.

  KEYS[1]   config   hash, register.lua; read only (but for a coldAt that a wrong clock wrote)
  KEYS[2…]  buckets  hash each: debt (units), at, line (µs), granted (tokens), refused (requests), rate (units a µs),
                     unit (units a token), version (of the config that wrote it)
  ARGV[1]   JSON array of whole numbers, flat:
              version, created         the config as the caller knows it
              n                        number of buckets, as in KEYS
              n × rate, unit, burst, attribute     the limit of each; attribute 0: governor-wide, else its number
              then the operations, each its number and what it takes; a bucket is its number in KEYS[2…], from 1:
              1 maxWait, maxSlot (µs), all (1: governor-wide limits give slots), returning (1), patience (µs)
                                                        terms: of all acquires that follow
              2 legs, legs × bucket, cost               acquire
              3 legs, legs × bucket, cost               force
              4 start (µs), legs, legs × bucket, cost, granted, pushed    cancel; the last two as the grant told them
              5 legs, legs × bucket, cost               peek
  Reply     { 0, numbers }: decided; numbers is a text of whole numbers, a space between: now (µs), then
              acquire  1 + wait (µs); if it waits, legs × granted (tokens), pushed (units it was moved forward)
                       0, leg (from 0), reason (0 rate, 1 line, 2 horizon), wait (µs), slotted (0, 1)
              force    1 or 0
              cancel   1 or 0
              peek     legs × remaining, wait (µs), line (µs), granted, refused
            { 1, '' }: the config is missing or not the one the caller knows; nothing was decided or written
  Time      the server's TIME, read once, in microseconds; never a caller's
  Model     src/core/decide.ts; test/lua/parity.test.ts holds the two together
]]
--- @include "numbers"
--- @include "clock"

local config = redis.call('HMGET', KEYS[1], 'version', 'created', 'coldAt')
local input = cjson.decode(ARGV[1])
local version = input[1]
if tonumber(config[1]) ~= version or tonumber(config[2]) ~= input[2] then
  return { 1, '' }
end

local now = nowUs()
local coldAt = tonumber(config[3]) or 0

--- @include "gcra"
--- @include "line"
--- @include "buckets"
--- @include "acquire"
--- @include "force"
--- @include "cancel"
--- @include "peek"

-- The clock was wrong when this was written, and has been put right: buckets would stay empty until it gets there.
if coldAt - now > MAX_COLD_AHEAD_US then
  coldAt = now
  redis.call('HSET', KEYS[1], 'coldAt', whole(now))
end

local position = loadBuckets(3)
local length = #input
put(now)
while position <= length do
  local operation = input[position]
  if operation == 1 then
    position = setTerms(position + 1)
  elseif operation == 2 then
    position = acquire(position + 1)
  elseif operation == 3 then
    position = force(position + 1)
  elseif operation == 4 then
    position = cancel(position + 1)
  else
    position = peek(position + 1)
  end
end
saveBuckets()
return { 0, table.concat(reply, ' ') }
