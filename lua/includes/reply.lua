--[[
  The reply of decide: whole numbers as texts, one after the other.
]]
--- @include "numbers"
local reply = {}
local put
do
  -- Most numbers of a reply are small, or the one before once more, and to write one takes as long as to decide.
  local texts = { [0] = '0', [1] = '1' }
  local lastNumber, lastText = 0, '0'
  local replied = 0

  function put(number)
    replied = replied + 1
    local text = texts[number]
    if not text then
      if number == lastNumber then
        text = lastText
      else
        text = whole(number)
        lastNumber, lastText = number, text
        if number < 100 then
          texts[number] = text
        end
      end
    end
    reply[replied] = text
  end
end
