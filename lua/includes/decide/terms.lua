--[[
  The terms of the acquires that follow in a call, and whose slots they are to be; src/core/decide/verdict.ts says what they mean.
  Reads `input`, `words`.
]]
local maxWait, maxTurn, allGiveTurns, returning, patience, priority, queues = 0, 0, false, false, 0, 1, false
local holder = ''

local function setTerms(position)
  maxWait, maxTurn = input[position], input[position + 1]
  allGiveTurns, returning = input[position + 2] == 1, input[position + 3] == 1
  patience, priority, queues = input[position + 4], input[position + 5], input[position + 6] == 1
  return position + 7
end

local function setHolder(position)
  holder = words[input[position]]
  return position + 1
end
