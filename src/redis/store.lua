-- The store's half of shared budgets: the rules of docs/shared-budget.md, as src/engine/lease/lease_store.c and lease_pot.c have
-- them; tests/unit/test_redis_script.c holds that both give the same answers. Redis runs it for every instance two or three
-- times a second, so it does as little as it can: a function, a table, a string and a Redis command cost more than arithmetic.
-- KEYS: the records of the instance, and the pot of each budget. ARGV[1]: the request of each budget, one after the other.
-- Answers as many bytes as src/redis/request.c reads, for each budget; zeros if its request is nonsense.
local TOKEN, MOST, LEVEL, KEEP = 1000000, 100000000000000, 1000000, '600000'
local TOLD = '<I4I4I4I4I8I8I8I8I8I8I8I8B'
local RECORD, RECORD_SIZE = '<I4I6I6I6I6I6I5B', 40
local POT, POT_SIZE = '<I6I6I5I4I4I4I4I4I4I4I4I4I6', 59
local ANSWER = '<I8I8I4I4I4I4I8'
local call, read, write, floor, sub, rep = redis.call, struct.unpack, struct.pack, math.floor, string.sub, string.rep
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local this_second, this_window = floor(now / 1000), floor(now / 2000)
local stored = call('MGET', unpack(KEYS))
local told, at = ARGV[1], 1
local records = stored[1] or ''
local pieces, count, copied = {}, 0, 0 -- of the records: so many bytes of the old ones are in the new ones
local answers = {}
for k = 2, #KEYS do
    local share, base, index, guard, number, answered, first, granted, spent, returned, level, era, leaving
    share, base, index, guard, number, answered, first, granted, spent, returned, level, era, leaving, at =
        read(TOLD, told, at)
    local from = index * RECORD_SIZE
    local answer
    if guard > 0 and index < 1024 and from >= copied and number > 0 and number <= MOST and answered < number and first <= MOST
        and granted <= MOST and spent <= granted and returned <= granted - spent and era <= MOST then
        local stock, floor_at, second, in_second, ten, peak, peak_before = 0, 0, 0, 0, 0, 0, 0
        local window, live, hungry, live_before, hungry_before, pot_era = 0, 0, 0, 0, 0, 0
        local old = stored[k]
        if old and #old == POT_SIZE then
            stock, floor_at, second, in_second, ten, peak, peak_before, window, live, hungry, live_before, hungry_before, pot_era =
                read(POT, old)
        end
        local of, r_number, r_first, r_granted, r_spent, r_returned, r_window, r_hungry = 0, 0, 0, 0, 0, 0, 0, 0
        if #records >= from + RECORD_SIZE then
            of, r_number, r_first, r_granted, r_spent, r_returned, r_window, r_hungry = read(RECORD, records, from + 1)
        end
        if of ~= guard then
            r_number, r_granted = 0, 0
        end

        -- rule 1
        local lost = answered > r_number or granted > r_granted
        if of ~= guard or lost then
            r_number, r_first, r_granted, r_spent, r_returned, r_window, r_hungry = 0, first, granted, spent, returned, 0, 0
        end
        if era > pot_era or (lost and era == pot_era) then
            stock, pot_era = 0, era + 1
        end

        -- rule 2
        if this_window > window or window - this_window > 1 then
            if this_window == window + 1 then
                live_before, hungry_before = live, hungry
            else
                live_before, hungry_before = 0, 0
            end
            window, live, hungry = this_window, 0, 0
        end

        local grown = 0
        local cap
        if number > r_number then
            -- the reported totals: a total only grows, and by no more than it may
            if first > r_first then
                grown = first - r_first
                r_first = first
            end
            local held = r_granted - r_spent - r_returned
            if spent > r_spent and held > 0 then
                local more = spent - r_spent
                more = more < held and more or held
                r_spent = r_spent + more
                held = held - more
            end
            local back = 0
            if returned > r_returned and held > 0 then
                back = returned - r_returned
                back = back < held and back or held
                r_returned = r_returned + back
                held = held - back
            end

            -- rule 3: the floor, then returned retries, then earned ones
            local elapsed = now > floor_at and now - floor_at or 0
            elapsed = elapsed < 60000 and elapsed or 60000
            floor_at = now
            if stock < TOKEN then
                local more = floor(elapsed * base / 1000)
                stock = more < TOKEN - stock and stock + more or TOKEN
            end
            if this_second > second or second - this_second > 1 then
                second, in_second = this_second, 0
            end
            local this_ten = floor(second / 10)
            if this_ten ~= ten then
                peak_before = this_ten == ten + 1 and peak or 0
                ten, peak = this_ten, 0
            end
            local counted = grown < 1000000000 and grown or 1000000000
            in_second = in_second + counted
            in_second = in_second < 1000000000 and in_second or 1000000000
            peak = peak > in_second and peak or in_second
            cap = floor((peak > peak_before and peak or peak_before) * share / 2)
            cap = cap < MOST and cap or MOST
            cap = cap > 2 * TOKEN and cap or 2 * TOKEN
            if stock < cap then
                local more = (back < LEVEL and back or LEVEL) * TOKEN + counted * share
                stock = more < cap - stock and stock + more or cap
            end

            -- rule 4
            local all = hungry > hungry_before and hungry or hungry_before
            local others = all > 0 and all - r_hungry or 0
            local want_level = level < LEVEL and level or LEVEL
            local want = want_level - held
            if want > 0 then
                local part = floor((floor(stock / TOKEN) + others) / (others + 1))
                want = want < part and want or part
                stock = stock - want * TOKEN
                r_granted = r_granted + want
                held = held + want
            end
            r_number = number

            -- rule 2: the instances that are counted
            if r_window == window + 1 then
                live = live > 0 and live - 1 or 0
                hungry = hungry > r_hungry and hungry - r_hungry or 0
            end
            if leaving == 1 then
                r_window, r_hungry = 0, 0
            else
                r_hungry = held < want_level and 1 or 0
                r_window = window + 1
                live, hungry = live + 1, hungry + r_hungry
            end
        else
            cap = floor((peak > peak_before and peak or peak_before) * share / 2)
            cap = cap < MOST and cap or MOST
            cap = cap > 2 * TOKEN and cap or 2 * TOKEN
        end

        -- rule 5
        local there = live > live_before and live or live_before
        there = there > 1 and there or 1
        there = there < 1000000 and there or 1000000
        local pause = there < 600 and 300 or there < 2000 and floor(there / 2) or 1000
        local ttl = pause > 333 and 3 * pause or 1000
        answer = write(ANSWER, number, r_granted, there, floor(cap / TOKEN), pause, (grown == 0 and level <= 1) and 2 * ttl or ttl, pot_era)

        if from > copied then
            count = count + 1
            pieces[count] = sub(records, copied + 1, from)
            if #records < from then
                pieces[count] = pieces[count] .. rep('\0', from - (copied > #records and copied or #records))
            end
        end
        count = count + 1
        pieces[count] = write(RECORD, guard, r_number, r_first, r_granted, r_spent, r_returned, r_window, r_hungry)
        copied = from + RECORD_SIZE
        call('SET', KEYS[k], write(POT, stock, floor_at, second, in_second, ten, peak, peak_before, window, live, hungry, live_before,
            hungry_before, pot_era), 'PX', KEEP)
    end
    answers[k - 1] = answer or rep('\0', 40)
end
if count > 0 then
    pieces[count + 1] = sub(records, copied + 1)
    call('SET', KEYS[1], table.concat(pieces), 'PX', KEEP)
end
return table.concat(answers)
