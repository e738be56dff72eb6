-- Idempotency keys that the gateways of a fleet keep together. Each answer is a list that begins with a word.
-- KEYS: the key's record, its guard, the list of keys that are held; of `list` the last alone.
-- ARGV: what is asked, then
--   begin  owner fingerprint once lease ttl where   begun | flight | done status seal fields body | lost status | held | mismatch | scope
--   end    owner ending ttl status seal fields body ok | fenced
--   renew  owner lease ttl                          ok | fenced
--   look                                            none | flight | done | held, and the guard's name
--   free                                            ok | none
--   list   most                                     how many are held, then a line for each: id, age, time left, where
-- The record: s its state (p in progress, d done, x done and its answer lost, u unknown), f fingerprint, o owner, e "1" for a key that
-- is done at most once, l the end of the owner's lease, w where, g the guard, a h b k the answer, m its line among those that are held.
-- An owner is another one for each beginning: only who has begun a key can end it.
local what = ARGV[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local record, guard, held = KEYS[1], KEYS[2], KEYS[#KEYS]

local function keep(ttl)
    redis.call('PEXPIRE', record, ttl)
    redis.call('PEXPIRE', guard, ttl)
end

local function unhold()
    local line = redis.call('HMGET', record, 'm')[1]
    if line then
        redis.call('ZREM', held, line)
        redis.call('HDEL', record, 'm')
    end
end

local function hold(ttl)
    unhold()
    local line = string.sub(record, -32) .. ' ' .. now .. ' ' .. (redis.call('HMGET', record, 'w')[1] or '')
    redis.call('HSET', record, 's', 'u', 'm', line)
    redis.call('ZADD', held, now + ttl, line)
    redis.call('PEXPIRE', held, ttl)
    keep(ttl)
end

-- The guard may be that of another record: the same request under another scope.
local function drop()
    unhold()
    if redis.call('MGET', guard)[1] == record then
        redis.call('DEL', guard)
    end
    redis.call('DEL', record)
end

if what == 'list' then
    redis.call('ZREMRANGEBYSCORE', held, '-inf', now)
    local lines = {}
    local most = tonumber(ARGV[2])
    local all = most > 0 and redis.call('ZRANGE', held, 0, most - 1, 'WITHSCORES') or {}
    for i = 1, #all, 2 do
        local id, since, where = string.match(all[i], '^(%x+) (%d+) (.*)$')
        if id then
            lines[#lines + 1] = id .. ' ' .. math.max(0, now - since) .. ' ' .. math.max(0, all[i + 1] - now) .. ' ' .. where
        end
    end
    return {'list', redis.call('ZCARD', held), table.concat(lines, '\n')}
end

if what == 'look' then
    local r = redis.call('HMGET', record, 's', 'g')
    return {r[1] == 'u' and 'held' or r[1] == 'p' and 'flight' or r[1] and 'done' or 'none', r[2] or ''}
end

if what == 'free' then
    if redis.call('HMGET', record, 's')[1] ~= 'u' then
        return {'none'}
    end
    drop()
    return {'ok'}
end

local owner = ARGV[2]

if what == 'begin' then
    local print, once, lease, ttl, where = ARGV[3], ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]
    local r = redis.call('HMGET', record, 's', 'f', 'l', 'a', 'k', 'h', 'b', 'e')
    local state = r[1]
    if state and r[2] ~= print then
        return {'mismatch'}
    elseif state == 'd' then
        return {'done', tonumber(r[4]), r[5], r[6], r[7]}
    elseif state == 'x' then
        return {'lost', tonumber(r[4])}
    elseif state == 'u' then
        return {'held'}
    elseif state == 'p' and tonumber(r[3]) > now then
        return {'flight'}
    elseif state == 'p' and r[8] == '1' then
        hold(ttl)
        return {'held'}
    end
    local other = once == '1' and redis.call('MGET', guard)[1]
    if other and other ~= record then
        return {'scope'}
    end
    redis.call('HSET', record, 's', 'p', 'f', print, 'o', owner, 'e', once, 'l', now + lease, 'w', where, 'g', guard)
    if once == '1' then
        redis.call('SET', guard, record)
    end
    keep(math.max(ttl, lease))
    return {'begun'}
end

local r = redis.call('HMGET', record, 's', 'o')
if r[2] ~= owner then
    return {'fenced'}
end

if what == 'renew' then
    local lease, ttl = tonumber(ARGV[3]), tonumber(ARGV[4])
    if r[1] == 'u' then
        unhold()
    end
    if r[1] == 'u' or r[1] == 'p' then
        redis.call('HSET', record, 's', 'p', 'l', now + lease)
        keep(math.max(ttl, lease))
    end
    return {'ok'}
end

-- An end that was told before, and whose answer was not heard.
if r[1] == 'd' or r[1] == 'x' then
    return {'ok'}
end
local ending, ttl = ARGV[3], tonumber(ARGV[4])
if ending == 'unknown' then
    hold(ttl)
    return {'ok'}
end
if ending == 'release' then
    drop()
    return {'ok'}
end
unhold()
if ending == 'answer' then
    redis.call('HSET', record, 's', 'd', 'a', ARGV[5], 'k', ARGV[6], 'h', ARGV[7], 'b', ARGV[8])
    keep(ttl)
else
    redis.call('HSET', record, 's', 'x', 'a', ARGV[5])
    keep(ttl)
end
return {'ok'}
