--[[
  Writes the fields of one hash: what is set goes out in one command, what is deleted in another.
]]
local asText = require('numbers').asText
local Fields = {}
local names, setting, deleted, deleting = {}, 0, {}, 0

function Fields.setText(field, text)
  names[setting + 1], names[setting + 2] = field, text
  setting = setting + 2
end

function Fields.set(field, number)
  names[setting + 1], names[setting + 2] = field, asText(number)
  setting = setting + 2
end

-- A field that is not there is 0. `stored`: what it is in the hash.
function Fields.setOrDelete(field, number, stored)
  if number > 0 then
    Fields.set(field, number)
  elseif stored > 0 then
    deleting = deleting + 1
    deleted[deleting] = field
  end
end

function Fields.delete(field)
  deleting = deleting + 1
  deleted[deleting] = field
end

function Fields.write(key)
  redis.call('HSET', key, unpack(names, 1, setting))
  if deleting > 0 then
    redis.call('HDEL', key, unpack(deleted, 1, deleting))
  end
  setting, deleting = 0, 0
end

return Fields
