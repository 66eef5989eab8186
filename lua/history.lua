--[[
  history: the last changes of the config.

  KEYS[1]  history as register.lua has it
  Reply    its entries as text, newest first
]]
return redis.call('LRANGE', KEYS[1], 0, -1)
