--[[
  Whole numbers as text, and times that a wrong clock wrote.
]]
local Numbers = {}
local format, max = string.format, math.max

-- Lua writes 10^14 as 1e+14, and Redis cuts the fraction off a number it replies with; so it is done here on purpose.
function Numbers.asText(number)
  return format('%.0f', number)
end

-- A time written by a clock that has since been put back by `stepUs`. 0 (no time) stays 0.
function Numbers.movedBy(us, stepUs)
  return us == 0 and 0 or max(0, us - stepUs)
end

return Numbers
