-- Plays a history of one adaptive limit and replies with its state after each step, each as if in a call of its own;
-- ../adaptive.test.ts compares it.
local input = cjson.decode(ARGV[1])

local function adaptiveAt(nowUs)
  loaded['call'], loaded['buckets/adaptive'] = { nowUs = nowUs }, nil
  return require 'buckets/adaptive'
end

local state = adaptiveAt(input.start).begun(input.rule, input.initial)
local states = {}
for index, step in ipairs(input.steps) do
  local Adaptive, rule = adaptiveAt(step.now), step.changed and input.changed or input.rule
  if input.period == 0 then
    Adaptive.hold(state, step.used)
  end
  Adaptive.rise(state, rule, input.period)
  if input.period > 0 then
    Adaptive.use(state, step.used)
  end
  if #step.report > 0 then
    Adaptive.observe(state, rule, unpack(step.report))
  end
  local numbers = {}
  for position, field in ipairs(input.fields) do
    numbers[position] = string.format('%.17g', state[field])
  end
  states[index] = table.concat(numbers, ' ')
end
return states
