--[[
  Who asks, and on what terms: of all acquires that follow in a call; src/core/decide/ask.ts says what they mean.
]]
local Call = require 'call'
local input, words = Call.input, Call.words
local Ask = {
  maxWaitUs = 0, maxTurnUs = 0, allGiveTurns = false, returning = false, patienceUs = 0, priority = 1, queues = false, holder = '',
}

function Ask.setTerms(position)
  Ask.maxWaitUs, Ask.maxTurnUs = input[position], input[position + 1]
  Ask.allGiveTurns, Ask.returning = input[position + 2] == 1, input[position + 3] == 1
  Ask.patienceUs, Ask.priority, Ask.queues = input[position + 4], input[position + 5], input[position + 6] == 1
  return position + 7
end

function Ask.setHolder(position)
  Ask.holder = words[input[position]]
  return position + 1
end

return Ask
