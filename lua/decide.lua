--[[
  decide: run a list of operations on one governor's buckets, in order, at one moment.

  KEYS[1]   config   hash, register.lua and pause-governor.lua; read only (but for what a wrong clock wrote)
  KEYS[2…]  buckets  the keys of each bucket, one after the other; includes/buckets/*/index.lua say which, and what they hold
  ARGV[1]   JSON array of whole numbers, flat; times in µs. src/store/redis/call/protocol.ts has the numbers and the order:
              version, created         the config as the caller knows it
              n, n × limit             its kind, and the numbers of one
              n, n × bucket            kind (as of its limit, or a share of a rate), limit (its number from 1), attribute (0:
                                         all requests meet it; else the attribute's number), number of its first key in KEYS,
                                         and two more: of a share the bucket of its limit and its weight; of a rate or window
                                         with maxKeys the shared bucket and the number of the registry's key; else 0 0
              then the operations, each its number and what it takes; a bucket is its number, from 1; a word one of ARGV[2]:
              setTerms   maxWait, maxTurn, all (1: limits that all meet give turns), returning (1), patience, priority (0 high …
                           2 low), queues (1: waits for slots)          of all acquires that follow
              setHolder  holder (word)                                  whose slots they are to be, of all that follow
              acquire    demands, demands × bucket, cost
              force      demands, demands × bucket, cost
              cancel     start, demands, demands × bucket, cost, granted, pushed; the last two as the grant told them
              peek       priority, demands, demands × bucket, cost
              atMost     most, priority, demands, demands × bucket
              settle     start, gives back (1), demands, demands × bucket, cost, actual
              release    bucket, holder (word), fence
              renew      bucket, holder (word), fence, cost
              leave      holder (word), n, n × bucket
              pause      for, message (word), n, n × bucket
              resume     message (word), n, n × bucket
              report     started, calls, throttled, failed, sum of latencies, n, n × bucket
  ARGV[2]   JSON array of words: the prefix of the channels that wake a process, the channel of events, the calling process, 1 if PUBLISH
              counts all who hear it, then those above
  Reply     { 0, numbers }: decided; numbers is a text of whole numbers, a space between: now, then
              acquire  1 + wait; then for each demand of a rate, if it waits: granted (tokens), pushed (units it was moved
                         forward); of slots: the fencing number
                       0, demand (from 0), reason, wait, hasTurn (0, 1)
              force    0; or 1, and of slots the fencing number
              peek     for each demand: remaining, wait, line, paused, granted, refused, effective
              atMost   tokens
              setTerms, setHolder: nothing; others: 1 or 0
            { 1, '' }: the config is missing or not the one the caller knows; nothing was decided or written
  Time      the server's TIME, read once, in microseconds; never a caller's
  Model     src/core/decide/acquire.ts; test/lua/parity.test.ts holds the two together
]]
local Call = require 'call'
if not Call.isCurrent then
  return { 1, '' }
end

local View = require 'decide/view'
local Reply = require 'reply'
local Protocol = require 'protocol'
local input, operations = Call.input, {}
local position, length = View.load(3), #input
Reply.put(Call.nowUs)
while position <= length do
  local number = input[position]
  local operation = operations[number]
  if not operation then
    operation = Protocol.operation(number)
    operations[number] = operation
  end
  position = operation(position + 1)
end
View.save()
return { 0, table.concat(Reply.texts, ' ') }
