--[[
  How long a bucket makes a request wait, as it stands now; src/core/decide/views.ts is the model. Reads `now`, `closedUntil`.
]]
--- @include "buckets/rate/gcra"
--- @include "buckets/rate/debt"
--- @include "buckets/kinds"
--- @include "buckets/window/window"
--- @include "buckets/concurrency/leases"
--- @include "buckets/share/share"
--- @include "decide/terms"

local function pausedFor(bucket)
  return max(0, max(bucket.closed, closedUntil) - now)
end

-- From the store's now until there is room; sets `seenLine`, the line as this request sees it.
local function look(bucket, cost)
  local paused = pausedFor(bucket)
  bucket.seenLine = bucket.open
  local wait
  if bucket.kind == RATE then
    wait = waitFor(bucket, cost, priority)
    return wait > 0 and bucket.at - now + wait or 0, paused
  elseif bucket.kind == WINDOW then
    wait = windowWait(bucket, cost)
  elseif bucket.kind == SLOTS then
    return max(paused, slotWait(bucket, cost, holder)), paused
  else
    local spare
    wait, spare = shareWait(bucket, cost)
    if spare then
      bucket.seenLine = 0
    end
  end
  return max(paused, wait > 0 and bucket.at - now + wait or 0), paused
end

local function lineAhead(bucket)
  local line = bucket.seenLine
  if line == 0 or returning or (bucket.kind == RATE and bucket.limit.ranked and priority == 0) then
    return 0
  end
  -- Nobody has come for what the share has: those of the line stand behind this one in their queue.
  if bucket.kind == SHARE and bucket.owed == 0 then
    return 0
  end
  return line - now
end
