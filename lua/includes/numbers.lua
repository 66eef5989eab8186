--[[
  Whole numbers as text. Lua writes 10^14 as 1e+14, and Redis cuts the fraction off a number it replies with; so it is done
  here on purpose.
]]
local function whole(number)
  return string.format('%.0f', number)
end
