-- Who is in the fleet: each process tells about itself every two seconds, and whoever wants reads all of them.
-- KEYS: the hash of processes. ARGV: the process, what it tells ("" when it leaves), "1" for who wants to read.
-- Answers a line for each: the process, how many milliseconds ago it has told, and what. Who is silent for a minute is forgotten.
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
