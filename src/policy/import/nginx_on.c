/* SPDX-License-Identifier: MIT */
#include "nginx_on.h"

#include <string.h>

void nginx_preface(struct source *s)
{
    emit_note(s->emit, NULL,
              "nginx counts proxy_read_timeout from the last byte, Becalm counts attemptTimeout from the start of the "
              "attempt. An answer that is no HTTP is a `reset`, as if invalid_header stood beside error.");
}

bool nginx_time(struct source *s, const struct from *from, const struct yaml_node *word, becalm_ns *out)
{
    static const struct {
        const char *unit;
        becalm_ns length;
    } units[] = {
        {"ms", BECALM_MS},       {"s", BECALM_S},          {"m", 60 * BECALM_S},      {"h", 3600 * BECALM_S},
        {"d", 86400 * BECALM_S}, {"w", 604800 * BECALM_S}, {"M", 2592000 * BECALM_S}, {"y", 31536000 * BECALM_S},
        {"", BECALM_S}};
    const char *text = word == NULL ? "" : word->text;
    becalm_ns sum = 0;
    const char *c = text;
    while (*c != '\0') {
        uint64_t number = 0;
        size_t digits = strspn(c, "0123456789");
        size_t letters = strspn(c + digits, "abcdefghijklmnopqrstuvwxyzM");
        const char *unit = c + digits;
        size_t i = 0;
        for (size_t k = 0; k < digits && number < UINT32_MAX; k++) {
            number = number * 10 + (uint64_t)(c[k] - '0');
        }
        while (i < sizeof units / sizeof *units &&
               (strlen(units[i].unit) != letters || strncmp(units[i].unit, unit, letters) != 0)) {
            i++;
        }
        if (digits == 0 || i == sizeof units / sizeof *units || number >= UINT32_MAX) {
            break;
        }
        becalm_ns part = number > BECALM_NEVER / 2 / units[i].length ? BECALM_NEVER / 2 : number * units[i].length;
        sum = sum > BECALM_NEVER / 2 ? sum : sum + part;
        c = unit + letters + strspn(unit + letters, " ");
    }
    if (c == text || *c != '\0') {
        source_error(s, word == NULL ? from->node : word, "bad-value",
                     "%s: \"%.64s\" is not a time; write it like 60s or 500ms", from->path, text);
        return false;
    }
    *out = sum;
    return true;
}

void nginx_on_add(struct source *s, struct nginx_on *on, struct emit_target *rules, const struct from *word,
                  const char *text)
{
    static const char *const error[] = {"connect-failure", "refused-stream", "reset"};
    if (strcmp(text, "off") == 0) {
        on->off = true;
    } else if (strcmp(text, "error") == 0) {
        for (size_t k = 0; k < sizeof error / sizeof *error; k++) {
            source_list_add(&on->list, error[k]);
        }
    } else if (strcmp(text, "timeout") == 0) {
        source_list_add(&on->list, "timeout");
    } else if (strcmp(text, "invalid_header") == 0) {
        source_list_add(&on->list, "reset");
    } else if (strcmp(text, "non_idempotent") == 0) {
        source_put_word(s, rules, "idempotent", "true", &(struct from){word->node, "non_idempotent", NULL});
    } else if (strncmp(text, "http_", 5) == 0 && strlen(text) == 8 && strspn(text + 5, "0123456789") == 3 &&
               (text[5] == '4' || text[5] == '5')) {
        source_list_add(&on->list, text + 5);
        on->application = on->application || strcmp(text, "http_500") == 0;
    } else {
        source_error(s, word->node, "bad-value", "%s: \"%.64s\" is no condition of nginx", word->path, text);
    }
}

bool nginx_on_put(struct source *s, const struct nginx_on *on, struct emit_target *rules, const struct from *from,
                  uint64_t retries)
{
    if (on->off || on->list.count == 0) {
        return false;
    }
    if (on->application && retries > 1) {
        source_no_equal(s, rules, &(struct from){from->node, "http_500", NULL},
                        "an error of the application is retried once per call, not at every host");
    }
    source_put_list(s, rules, "retryOn", &on->list, from);
    return true;
}

void nginx_at_once(struct source *s, struct emit_target *rules, const struct from *count, bool written)
{
    const struct from at_once = {count->node, count->path, "nginx does not wait between attempts"};
    const struct from unwritten = {count->node, count->path, "nginx's default: error timeout"};
    source_put_duration(s, rules, "initialDelay", 0, &at_once);
    if (!written) {
        source_put_word(s, rules, "retryOn", "[connect-failure, refused-stream, reset, timeout]", &unwritten);
    }
}

void nginx_whole_time(struct source *s, struct emit_target *rules, const struct from *from, becalm_ns time,
                      becalm_ns attempt)
{
    source_no_equal(s, rules, from,
                    "it ends the passing on, not the attempt that runs; the deadline is the sum of both times");
    source_put_duration(s, rules, "deadline", becalm_ns_after(time, attempt), from);
}
