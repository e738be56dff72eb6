-- The store's half of shared budgets: the rules of docs/shared-budget.md, as src/engine/lease/lease_store.c and lease_pot.c have
-- them; tests/unit/test_redis_script.c holds that both give the same answers.
-- KEYS: the record of the instance, and the pot of each budget. ARGV: eleven words for each budget.
-- Answers seven numbers for each: number, granted, live, room, next, ttl, era; zeros if the request is nonsense.
local TOKEN, MOST, LEVEL, KEEP = 1000000, 100000000000000, 1000000, 600000
local floor, min, max = math.floor, math.min, math.max
local time = redis.call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)

-- record: 1 number, 2 first, 3 granted, 4 spent, 5 returned, 6 window, 7 hungry
local function outstanding(record)
    return max(record[3] - record[4] - record[5], 0)
end

local function move(record, i, told, may)
    local grown = min(max(told - record[i], 0), may)
    record[i] = record[i] + grown
    return grown
end

-- pot: 1 stock, 2 floor_at, 3 second, 4 told, 5 ten, 6 peak, 7 peak_before;
-- census: 8 window, 9 live, 10 hungry, 11 live_before, 12 hungry_before; 13 era
local function cap(pot, share)
    return max(min(floor(max(pot[6], pot[7]) * share / 2), MOST), 2 * TOKEN)
end

local function add(pot, amount, most)
    if pot[1] < most then
        pot[1] = pot[1] + min(amount, most - pot[1])
    end
end

local function earn(pot, share, base, first, returned)
    local told = min(first, 1000000000)
    local elapsed = min(max(now - pot[2], 0), 60000)
    pot[2] = now
    add(pot, floor(elapsed * base / 1000), TOKEN)
    local second = floor(now / 1000)
    if second > pot[3] or pot[3] - second > 1 then
        pot[3], pot[4] = second, 0
    end
    local ten = floor(pot[3] / 10)
    if ten ~= pot[5] then
        pot[7] = ten == pot[5] + 1 and pot[6] or 0
        pot[5], pot[6] = ten, 0
    end
    pot[4] = min(pot[4] + told, 1000000000)
    pot[6] = max(pot[6], pot[4])
    local most = cap(pot, share)
    add(pot, min(returned, LEVEL) * TOKEN, most)
    add(pot, told * share, most)
end

local function grant(pot, record, level)
    local hungry = max(pot[10], pot[12])
    local others = hungry - (hungry > 0 and record[7] or 0)
    local want = max(level - outstanding(record), 0)
    return min(want, floor((floor(pot[1] / TOKEN) + others) / (others + 1)))
end

local function count(pot, record, hungry, leaving)
    if record[6] == pot[8] + 1 then
        pot[9] = max(pot[9] - 1, 0)
        pot[10] = max(pot[10] - record[7], 0)
    end
    if leaving then
        record[6], record[7] = 0, 0
    else
        pot[9] = pot[9] + 1
        pot[10] = pot[10] + hungry
        record[6], record[7] = pot[8] + 1, hungry
    end
end

local function settle(pot, record, share, base, request)
    local level = min(request[7], LEVEL)
    local first = move(record, 2, request[3], MOST)
    move(record, 4, request[5], outstanding(record))
    local returned = move(record, 5, request[6], outstanding(record))
    earn(pot, share, base, first, returned)
    local granted = grant(pot, record, level)
    pot[1] = pot[1] - granted * TOKEN
    record[3] = record[3] + granted
    record[1] = request[1]
    count(pot, record, outstanding(record) < level and 1 or 0, request[8] == 1)
    return first
end

local function sane(request)
    for i = 1, 9 do
        if not request[i] or request[i] < 0 then
            return false
        end
    end
    return request[1] > 0 and request[1] <= MOST and request[2] < request[1] and request[3] <= MOST
        and request[4] <= MOST and request[5] <= request[4] and request[6] <= request[4] - request[5]
        and request[9] <= MOST
end

local function census(pot)
    local window = floor(now / 2000)
    if window <= pot[8] and pot[8] - window <= 1 then
        return
    end
    local follows = window == pot[8] + 1
    pot[11] = follows and pot[9] or 0
    pot[12] = follows and pot[10] or 0
    pot[8], pot[9], pot[10] = window, 0, 0
end

local stored = redis.call('MGET', unpack(KEYS))
local records = stored[1] and cmsgpack.unpack(stored[1]) or {}
local answers = {}
for k = 2, #KEYS do
    local from = (k - 2) * 11
    local share, base, request = tonumber(ARGV[from + 1]), tonumber(ARGV[from + 2]), {}
    for i = 1, 9 do
        request[i] = tonumber(ARGV[from + 2 + i])
    end
    local answer = {0, 0, 0, 0, 0, 0, 0}
    if share and base and sane(request) then
        local name = string.match(KEYS[k], ':b:(.*)$')
        local pot = stored[k] and cmsgpack.unpack(stored[k]) or {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
        pot[13] = pot[13] or 0 -- of a version that had none
        local record = records[name]
        local lost = request[2] > (record and record[1] or 0) or request[4] > (record and record[3] or 0)
        if not record or lost then
            record = {0, request[3], request[4], request[5], request[6], 0, 0}
        end
        if request[9] > pot[13] or (lost and request[9] == pot[13]) then
            pot[1], pot[13] = 0, request[9] + 1
        end
        census(pot)
        local first = 0
        if request[1] > record[1] then
            first = settle(pot, record, share, base, request)
        end
        local live = min(max(pot[9], pot[11], 1), 1000000)
        local next = min(max(floor(live / 2), 300), 1000)
        local ttl = max(3 * next, 1000) * ((first == 0 and request[7] <= 1) and 2 or 1)
        answer = {request[1], record[3], live, floor(cap(pot, share) / TOKEN), next, ttl, pot[13]}
        records[name] = record
        redis.call('SET', KEYS[k], cmsgpack.pack(pot), 'PX', KEEP)
    end
    for i = 1, 7 do
        answers[#answers + 1] = answer[i]
    end
end
if next(records) then
    redis.call('SET', KEYS[1], cmsgpack.pack(records), 'PX', KEEP)
end
return answers
