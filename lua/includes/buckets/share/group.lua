--[[
  The values that are active under a fair limit, together; src/core/buckets/share/group.ts is the model and says why.

  Hash: second, light (share units × µs that inactive values had in it), before (the same of the second before), and for each active
  value, by the name of its own key, "weight until".
]]
local Fields = require 'fields'
local C = require 'constants'
local asText = require('numbers').asText
local expireAfterMs = require('clock').expireAfterMs
local nowUs = require('call').nowUs
local Group = {}
local ceil, floor, max = math.ceil, math.floor, math.max
local groups = {}

function Group.load(key)
  local group = groups[key]
  if group then
    return group
  end
  group = { active = {}, gone = {}, second = floor(nowUs / C.SECOND_US), light = 0, before = 0, changed = false }
  groups[key] = group
  local stored, counts = redis.call('HGETALL', key), {}
  for index = 1, #stored, 2 do
    local field, value = stored[index], stored[index + 1]
    local weight, untilUs = string.match(value, '^(%d+) (%d+)$')
    untilUs = tonumber(untilUs)
    if not untilUs then
      counts[field] = tonumber(value)
    elseif untilUs > nowUs and untilUs - nowUs <= C.ACTIVE_US + C.MAX_CLOCK_STEP_US then
      group.active[field] = { weight = tonumber(weight), untilUs = untilUs }
    else
      group.gone[#group.gone + 1] = field
    end
  end
  local passed = group.second - (counts.second or group.second)
  if passed == 0 then
    group.light, group.before = counts.light or 0, counts.before or 0
  elseif passed == 1 then
    group.before = counts.light or 0
  end
  return group
end

-- The share of a value now, in units a microsecond.
function Group.shareOf(group, member, weight)
  local total = weight
  for other, theirs in pairs(group.active) do
    if other ~= member then
      total = total + theirs.weight
    end
  end
  local restUs = C.SECOND_US - (nowUs - group.second * C.SECOND_US)
  local light = floor((group.before * restUs) / C.SECOND_US) + group.light
  local left = max(C.LEAST_LEFT, C.SCALE - floor(light / C.SECOND_US))
  return max(1, floor((left * weight) / total))
end

function Group.activate(group, member, weight, atUs)
  group.active[member] = { weight = weight, untilUs = atUs + C.ACTIVE_US, isNew = true }
  group.changed = true
end

-- After all shares of a call.
function Group.saveAll()
  for key, group in pairs(groups) do
    if group.changed then
      Fields.set('second', group.second)
      Fields.set('light', group.light)
      Fields.set('before', group.before)
      for member, theirs in pairs(group.active) do
        if theirs.isNew then
          Fields.setText(member, asText(theirs.weight) .. ' ' .. asText(theirs.untilUs))
        end
      end
      for index = 1, #group.gone do
        if not group.active[group.gone[index]] then
          Fields.delete(group.gone[index])
        end
      end
      Fields.write(key)
      expireAfterMs(key, ceil(((group.second + 2) * C.SECOND_US + C.LINE_GRACE_US - nowUs) / 1000))
    end
  end
end

return Group
