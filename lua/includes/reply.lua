--[[
  The reply of decide: whole numbers as texts, one after the other.
]]
local asText = require('numbers').asText
local reply, length = {}, 0
-- Most numbers of a reply are small, or the one before once more, and to write one takes as long as to decide.
local texts = { [0] = '0', [1] = '1' }
local lastNumber, lastText = 0, '0'

local function put(number)
  local text = texts[number]
  if not text then
    if number == lastNumber then
      text = lastText
    else
      text = asText(number)
      lastNumber, lastText = number, text
      if number < 100 then
        texts[number] = text
      end
    end
  end
  length = length + 1
  reply[length] = text
end

return { texts = reply, put = put }
