-- Idempotency keys that the gateways of a fleet keep together. Each answer is a list that begins with a word.
-- KEYS: the list of held keys, the era, the asker's count. All requests but `list` add the key's record and its guard. If there is a
-- previous secret, `begin` also adds the record and guard under that: an answer from there has "older" as its last word.
-- ARGV: the request, the run of the server that the asker is connected to ("" if it may not read that), the lease; then
--   begin  owner fingerprint once ttl where sure fence older   begun fence | flight | done status seal fields body | lost status | held | mismatch |
--                                                           scope | forgot wait
--   end    owner fingerprint once ttl where ending status seal fields body   ok count | fenced
--   renew  owner fingerprint once ttl where                 ok | fenced
--   tell   fingerprint ttl where status                     ok count: the asker has executed this key; status 0: it is held
--   look                                                    none | flight | done | held, and the guard's name
--   free                                                    ok | none
--   list   most ttl clock                                   the number of held keys, a line for each (id, age, time left, where), the count, and the
--                                                           clock; "clock" is the time that the asker expects of it, "" before it knows
-- sure: "1": begin the key only if the store is certain that it has forgotten nothing; "2": the same, and the asker's process has listed
-- keys since it is connected. fence: "1": the answer has the next fence number; else 0.
-- The record: s state (p in progress, d done, x done and its answer lost, u unknown, r released by an operator: any gateway may begin
-- it), f fingerprint, o owner, e "1" for an enforced key, l end of the owner's lease, w where, g guard, a h b k the answer, m its line in the
-- list of held keys, t when a key that has ended expires.
-- Each beginning has its own owner: only the gateway that has begun a key can end it. If the record is missing, its owner writes it again.
-- The era: r the run of the server that wrote it, u until when the store may have forgotten keys, d since when, n the last fence, c the
-- clock at the last `list`, which every process sends every few seconds. A server that was restarted or emptied, or that gets a key that
-- it has forgotten, may have forgotten more keys. For one lease it begins no enforced key, so that all gateways can write their keys again.
-- The same holds when its clock was set: forward ends keys too early, and backward would make leases longer.
-- A call waits while its key begins. So the usual case of `begin` comes first and does as little as it can: a Redis command, a function,
-- a table, and a number that is turned into text cost more than anything else here.
local call = redis.call
local what, run, lease = ARGV[1], ARGV[2], tonumber(ARGV[3])
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local held, era, count, record, guard = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]

local fence = what == 'begin' and ARGV[10] == '1'
local found = fence and call('HMGET', era, 'r', 'u', 'c', 'n') or call('HMGET', era, 'r', 'u', 'c')
local distrust = found[2] and tonumber(found[2]) or 0
local known_run = found[1] and (run == '' or found[1] == run)
local minute = 60000
local ran_ahead = what == 'begin' and ARGV[9] == '2' and found[3] and now - found[3] >= minute

local owner, print, once, ttl, where = ARGV[4], ARGV[5], ARGV[6], tonumber(ARGV[7]), ARGV[8]
local life = (ttl or 0) > lease and ARGV[7] or ARGV[3] -- of a key that has begun; a text, as Redis wants it

-- Each beginning has a higher number than all before, also after a loss, as far as the server's clock goes forward.
local number = fence and math.max(now, (found[4] or 0) + 1) or 0

-- A key that was not begun yet, in a store that has forgotten nothing.
if what == 'begin' and known_run and now >= distrust and not ran_ahead and not KEYS[6] and call('HLEN', record) == 0
    and (once ~= '1' or call('SET', guard, record, 'PX', life, 'NX')) then
    call('HSET', record, 's', 'p', 'o', owner, 'f', print, 'e', once, 'l', string.format('%d', now + lease), 'w', where, 'g', guard)
    call('PEXPIRE', record, life)
    if fence then
        call('HSET', era, 'n', number)
    end
    return {'begun', number}
end

local function write(state, owner, print, once, where, ttl)
    call('HSET', record, 's', state, 'o', owner, 'f', print, 'e', once, 'l', string.format('%d', now + lease), 'w', where, 'g', guard)
    call('PEXPIRE', record, ttl)
end

local function doubt()
    distrust = now + lease
    call('HSET', era, 'u', distrust, 'd', now, 'c', now)
end

-- At the first `list` of a process, a clock that was set looks the same as a fleet that was away.
if what == 'list' then
    ran_ahead = ARGV[6] ~= '' and now - ARGV[6] >= minute
end
if not known_run then
    call('HSET', era, 'r', run)
end
if not known_run or ran_ahead or (now < distrust and now < tonumber(call('HMGET', era, 'd')[1] or 0)) then
    doubt()
end

-- The number of the asker's ends in the store; adds one if `more`.
local function counted(more, ttl)
    local number = tonumber(call('MGET', count)[1] or 0)
    if more then
        number = number + 1
        call('SET', count, string.format('%d', number), 'PX', 2 * ttl)
    end
    return number
end

local function keep(ttl)
    call('PEXPIRE', record, ttl)
    call('PEXPIRE', guard, ttl)
end

-- The guard may be that of another record: the same request under another scope.
local function begin(state, owner, print, once, where, ttl)
    write(state, owner, print, once, where, ttl)
    if once == '1' and not call('SET', guard, record, 'PX', ttl, 'NX') then
        call('PEXPIRE', guard, ttl)
    end
end

local function unhold()
    local line = call('HMGET', record, 'm')[1]
    if line then
        call('ZREM', held, line)
        call('HDEL', record, 'm')
    end
end

local function hold(ttl)
    unhold()
    local line = string.sub(record, -32) .. ' ' .. now .. ' ' .. (call('HMGET', record, 'w')[1] or '')
    call('HSET', record, 's', 'u', 'm', line, 't', now + ttl)
    call('ZADD', held, now + ttl, line)
    call('PEXPIRE', held, ttl)
    keep(ttl)
end

-- The asker knows that the key expires later: the clock was set forward since.
local function prolong(ttl)
    local r = call('HMGET', record, 't', 'm')
    if now + ttl > tonumber(r[1] or 0) then
        call('HSET', record, 't', now + ttl)
        keep(ttl)
        if r[2] then
            call('ZADD', held, now + ttl, r[2])
            call('PEXPIRE', held, ttl)
        end
    end
end

local function open()
    unhold()
    if call('MGET', guard)[1] == record then
        call('DEL', guard)
    end
end

if what == 'list' then
    call('ZREMRANGEBYSCORE', held, '-inf', now)
    local lines = {}
    local most = tonumber(ARGV[4])
    local all = most > 0 and call('ZRANGE', held, 0, most - 1, 'WITHSCORES') or {}
    for i = 1, #all, 2 do
        local id, since, where = string.match(all[i], '^(%x+) (%d+) (.*)$')
        if id then
            lines[#lines + 1] = id .. ' ' .. math.max(0, now - since) .. ' ' .. math.max(0, all[i + 1] - now) .. ' ' .. where
        end
    end
    call('PEXPIRE', count, 2 * ARGV[5])
    call('HSET', era, 'c', now)
    return {'list', call('ZCARD', held), table.concat(lines, '\n'), counted(), now}
end

if what == 'look' then
    local r = call('HMGET', record, 's', 'g')
    return {r[1] == 'u' and 'held' or r[1] == 'p' and 'flight' or r[1] and r[1] ~= 'r' and 'done' or 'none', r[2] or ''}
end

if what == 'free' then
    if call('HMGET', record, 's')[1] ~= 'u' then
        return {'none'}
    end
    -- Its owner may report the unknown outcome once more: the record stays, and shows that an operator has decided.
    open()
    call('HSET', record, 's', 'r')
    return {'ok'}
end

if what == 'tell' then
    local print, ttl, where, status = ARGV[4], tonumber(ARGV[5]), ARGV[6], ARGV[7]
    doubt()
    if call('HMGET', record, 's')[1] then
        prolong(ttl)
    else
        begin('x', '', print, '1', where, ttl)
        call('HSET', record, 'a', status, 't', now + ttl)
        if status == '0' then
            hold(ttl)
        end
    end
    return {'ok', counted(true, ttl)}
end

-- The answer to a request whose key has a record: the stored answer, or only the state.
local function known(print)
    local r = call('HMGET', record, 's', 'f', 'l', 'a', 'k', 'h', 'b', 'e')
    local state = r[1]
    if state and state ~= 'r' and r[2] ~= print then
        return {'mismatch'}
    elseif state == 'd' then
        return {'done', tonumber(r[4]), r[5], r[6], r[7]}
    elseif state == 'x' then
        return {'lost', tonumber(r[4])}
    elseif state == 'u' then
        return {'held'}
    elseif state == 'p' and tonumber(r[3]) > now then
        -- The clock was set back since, or the owner has a longer lease, by a minute at most. An owner that is alive renews its lease in time.
        if r[3] - now > lease + minute then
            call('HSET', record, 'l', string.format('%d', now + lease))
        end
        return {'flight'}
    elseif state == 'p' and r[8] == '1' then
        hold(ttl)
        return {'held'}
    end
    local other = once == '1' and call('MGET', guard)[1]
    if other and other ~= record then
        return {'scope'}
    end
    return nil, state
end

if what == 'begin' then
    local answer, state = known(print)
    if not answer and KEYS[6] then
        record, guard = KEYS[6], KEYS[7]
        answer = known(ARGV[11])
        record, guard = KEYS[4], KEYS[5]
        if answer then
            answer[#answer + 1] = 'older'
        end
    end
    if answer then
        return answer
    end
    if not state and once == '1' and ARGV[9] ~= '0' and now < distrust then
        return {'forgot', distrust - now}
    end
    begin('p', owner, print, once, where, life)
    if fence then
        call('HSET', era, 'n', number)
    end
    return {'begun', number}
end

local r = call('HMGET', record, 's', 'o')
local ending = what == 'end' and ARGV[9]
if r[1] == 'r' and r[2] == owner and ending == 'unknown' then
    return {'fenced'}
elseif not r[1] or (r[1] == 'r' and r[2] == owner) then
    begin('p', owner, print, once, where, life)
    r = {'p', owner}
elseif r[2] ~= owner then
    return {'fenced'}
end

if what == 'renew' then
    if r[1] == 'u' then
        unhold()
    end
    if r[1] == 'u' or r[1] == 'p' then
        call('HSET', record, 's', 'p', 'l', now + lease)
        keep(life)
    end
    return {'ok'}
end

-- An end that was sent before, and whose acknowledgement was lost, is written once more.
if ending == 'release' then
    open()
    call('DEL', record)
    return {'ok'}
end
if ending == 'unknown' then
    hold(ttl)
    return {'ok', counted(true, ttl)}
end
if r[1] == 'u' then
    unhold()
end
if ending == 'answer' then
    call('HSET', record, 's', 'd', 'a', ARGV[10], 'k', ARGV[11], 'h', ARGV[12], 'b', ARGV[13], 't', now + ttl)
else
    call('HSET', record, 's', 'x', 'a', ARGV[10], 't', now + ttl)
end
keep(ttl)
return {'ok', counted(true, ttl)}
