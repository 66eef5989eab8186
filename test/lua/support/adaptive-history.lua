-- Plays a history of one adaptive limit and replies with its state after each step; ../adaptive.test.ts compares it.
local now
--- @include "buckets/adaptive"
local input = cjson.decode(ARGV[1])
now = input.start
local state = adaptiveBegun(input.rule, input.initial)
local states = {}
for index, step in ipairs(input.steps) do
  now = step.now
  local rule = step.changed and input.changed or input.rule
  if input.period == 0 then
    adaptiveHold(state, step.used)
  end
  adaptiveRise(state, rule, input.period)
  if input.period > 0 then
    adaptiveUse(state, step.used)
  end
  if #step.report > 0 then
    adaptiveObserve(state, rule, unpack(step.report))
  end
  local numbers = {}
  for position, field in ipairs(input.fields) do
    numbers[position] = string.format('%.17g', state[field])
  end
  states[index] = table.concat(numbers, ' ')
end
return states
