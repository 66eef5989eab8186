--[[
  Whole numbers as text, and the reply that is made of them.

  Lua writes 10^14 as 1e+14, and Redis cuts the fraction off a number it replies with; so both are done here on purpose.
]]
local function whole(number)
  return string.format('%.0f', number)
end

-- Most numbers of a reply are small, or the one before once more, and to write one takes as long as to decide.
local reply, replied = {}, 0
local texts = { [0] = '0', [1] = '1' }
local lastNumber, lastText = 0, '0'

local function put(number)
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
