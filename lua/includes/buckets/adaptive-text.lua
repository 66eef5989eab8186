--[[
  The state of an adaptive limit as one field of its bucket's hash: fourteen whole numbers, a space between, in this order.
]]
--- @include "numbers"
local readAdaptive, writeAdaptive
-- Lua allows 200 locals in one function: what only this part needs stays in its block.
do
  local ADAPTIVE_FIELDS = {
    'value', 'bad', 'climbUs', 'cutUs', 'riseUs', 'used', 'busy', 'windowUs', 'calls', 'failed', 'latencySumUs', 'usualNs',
    'lookUs', 'lookFrom',
  }

  function readAdaptive(text)
    local state, index = {}, 0
    for number in string.gmatch(text, '%d+') do
      index = index + 1
      state[ADAPTIVE_FIELDS[index] or index] = tonumber(number)
    end
    return index == #ADAPTIVE_FIELDS and state or nil
  end

  function writeAdaptive(state)
    local numbers = {}
    for index = 1, #ADAPTIVE_FIELDS do
      numbers[index] = whole(state[ADAPTIVE_FIELDS[index]])
    end
    return table.concat(numbers, ' ')
  end
end
