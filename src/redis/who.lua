-- The list of the fleet's processes: each process writes its entry every two seconds, and may read the entries of all.
-- KEYS: the hash of processes. ARGV: the process, its entry ("" when it leaves), "1" to read all entries.
-- Answers a line for each process: its name, the age of its entry in milliseconds, and the entry. An entry is dropped after a minute without news.
local FORGET, KEEP, MOST = 60000, 600000, 5000
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if ARGV[2] == '' then
    redis.call('HDEL', KEYS[1], ARGV[1])
else
    redis.call('HSET', KEYS[1], ARGV[1], now .. ' ' .. ARGV[2])
    redis.call('PEXPIRE', KEYS[1], KEEP)
end
if ARGV[3] ~= '1' and redis.call('HLEN', KEYS[1]) <= MOST then
    return ''
end
local lines = {}
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
    local at, rest = string.match(all[i + 1], '^(%d+) (.*)$')
    local age = at and now - at or FORGET
    if age >= FORGET then
        redis.call('HDEL', KEYS[1], all[i])
    elseif #lines < MOST then
        lines[#lines + 1] = all[i] .. ' ' .. math.max(age, 0) .. ' ' .. rest
    end
end
return table.concat(lines, '\n')
