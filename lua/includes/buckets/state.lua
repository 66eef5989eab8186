--[[
  What is written of a bucket of any kind: at, granted, line, refused, closed and closedFrom (end and beginning of its
  pause).
]]
local Fields = require 'fields'
local expireAfterMs = require('clock').expireAfterMs
local nowUs = require('call').nowUs
local State = {}

-- Writes these fields and those that its kind has set, and lets the bucket's key, and others of it, go after `expiresUs`.
function State.save(bucket, expiresUs, ...)
  local ms = math.ceil((expiresUs - nowUs) / 1000)
  Fields.set('at', bucket.atUs)
  Fields.set('granted', bucket.granted)
  Fields.setOrDelete('line', bucket.lineUs, bucket.storedLineUs)
  Fields.setOrDelete('refused', bucket.refused, 0)
  if bucket.pause then
    Fields.set('closed', bucket.pause.untilUs)
    Fields.set('closedFrom', bucket.pause.fromUs)
  end
  Fields.write(bucket.key)
  expireAfterMs(bucket.key, ms)
  for _, key in ipairs { ... } do
    expireAfterMs(key, ms)
  end
end

-- Writes what refusals alone have left: a turn in the line, or only the counter.
function State.saveRefusals(bucket)
  if bucket.refused ~= bucket.storedRefused then
    Fields.set('refused', bucket.refused)
    if bucket.lineUs ~= bucket.storedLineUs then
      Fields.set('line', bucket.lineUs)
    end
    Fields.write(bucket.key)
  end
end

return State
