--[[
  decide: run a list of operations on one governor's buckets, in order, at one moment.

  KEYS[1]   config   hash, register.lua and pause.lua; read only (but for what a wrong clock wrote)
  KEYS[2…]  buckets  the keys of each bucket, one after the other; includes/{rate,window,slots,share,overflow}.lua say
                     which, and what they hold
  ARGV[1]   JSON array of whole numbers, flat; times in µs:
              version, created         the config as the caller knows it
              n, n × limit             1 (rate), rate (units a µs), unit (units a token), burst, oversize (1: may leave it owing),
                                         ranked (1: by priority), kept from normal, kept from low (tokens), penalty after,
                                         permille, for (0 0 0: none), maxKeys (0: none), fastest rate, adaptive
                                       2 (window), mode (1 fixed, 2 sliding, 3 log), max, window, cells, aligned (1), maxKeys
                                       3 (slots), max, lease, adaptive
                                       adaptive: min, max, mode (1: gradient), latency, errors (permille), period; 0 0…: none
              n, n × bucket            kind (as of its limit; 4: a share of a rate), limit (its number from 1), attribute (0:
                                         all requests meet it; else the attribute's number), number of its first key in KEYS,
                                         and two more: of a share the bucket of its limit and its weight; of a rate or window
                                         with maxKeys the shared bucket and the number of the registry's key; else 0 0
              then the operations, each its number and what it takes; a bucket is its number, from 1; a word one of ARGV[2]:
              1 maxWait, maxTurn, all (1: limits that all meet give slots), returning (1), patience, priority (0 high … 2
                low), queues (1: waits for slots)                     terms: of all acquires that follow
              2 legs, legs × bucket, cost                               acquire
              3 legs, legs × bucket, cost                               force
              4 start, legs, legs × bucket, cost, granted, pushed       cancel; the last two as the grant told them
              5 priority, legs, legs × bucket, cost                     peek
              6 most, priority, legs, legs × bucket                     atMost
              7 start, gives back (1), legs, legs × bucket, cost, actual   settle
              8 bucket, holder (word), fence                            release
              9 bucket, holder (word), fence, cost                      renew
              10 holder (word), n, n × bucket                           leave the queues
              11 for, message (word), n, n × bucket                     pause
              12 message (word), n, n × bucket                          resume
              13 started, calls, throttled, failed, sum of latencies, n, n × bucket   report
              14 holder (word)                                          whose slots they are to be, of all that follow
  ARGV[2]   JSON array of words: the prefix of the channels that wake a process, the channel of events, the calling process, 1 if PUBLISH
              counts all who hear it, then those above
  Reply     { 0, numbers }: decided; numbers is a text of whole numbers, a space between: now, then
              acquire  1 + wait; then for each leg of a rate, if it waits: granted (tokens), pushed (units it was moved forward);
                         of slots: the fencing number
                       0, leg (from 0), reason (0 rate, 1 line, 2 horizon, 3 window, 4 concurrency, 5 share, 6 paused, 7 the whole governor), wait,
                         hasTurn (0, 1)
              force    0; or 1, and of slots the fencing number
              peek     legs × remaining, wait, line, paused, granted, refused, effective
              atMost   tokens
              others   1 or 0
            { 1, '' }: the config is missing or not the one the caller knows; nothing was decided or written
  Time      the server's TIME, read once, in microseconds; never a caller's
  Model     src/core/decide/acquire.ts; test/lua/parity.test.ts holds the two together
]]
--- @include "numbers"
--- @include "reply"
--- @include "clock"

local config = redis.call('HMGET', KEYS[1], 'version', 'created', 'coldAt', 'closed', 'closedAt', 'updatedAt')
local input = cjson.decode(ARGV[1])
local version = input[1]
if tonumber(config[1]) ~= version or tonumber(config[2]) ~= input[2] then
  return { 1, '' }
end

local now = nowUs()
local coldAt, closedUntil, changedAt = tonumber(config[3]) or 0, tonumber(config[4]) or 0, tonumber(config[6]) or 0
local words = cjson.decode(ARGV[2])
local wakePrefix, eventsChannel, instance, countsListeners = words[1], words[2], words[3], words[4] == '1'

--- @include "buckets/rate/gcra"
--- @include "decide/buckets"
--- @include "decide/acquire"
--- @include "decide/terms"
--- @include "decide/force"
--- @include "decide/cancel"
--- @include "decide/peek"
--- @include "decide/at-most"
--- @include "decide/settle"
--- @include "decide/holding"
--- @include "decide/pause"
--- @include "decide/report"

-- The clock was wrong when these were written, and has been put right: nothing must stand still until it gets there.
if coldAt - now > MAX_COLD_AHEAD_US then
  coldAt = now
  redis.call('HSET', KEYS[1], 'coldAt', whole(now))
end
if changedAt - now > MAX_CLOCK_STEP_US then
  changedAt = now
  redis.call('HSET', KEYS[1], 'updatedAt', whole(now))
end
local closedAhead = (tonumber(config[5]) or 0) - now
if closedAhead > MAX_CLOCK_STEP_US then
  closedUntil = movedBy(closedUntil, closedAhead)
  redis.call('HSET', KEYS[1], 'closed', whole(closedUntil), 'closedAt', whole(now))
end

local operations = {
  setTerms, acquire, force, cancel, peek, atMost, settle, release, renew, leave, pause, resume, report, setHolder,
}
local position = loadBuckets(3)
local length = #input
put(now)
while position <= length do
  position = operations[input[position]](position + 1)
end
saveBuckets()
return { 0, table.concat(reply, ' ') }
