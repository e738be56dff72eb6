/* SPDX-License-Identifier: MIT */
#include "haproxy_internal.h"

#include <string.h>

#define RETRIES     3u       /* HAProxy's defaults */
#define TURN_AROUND BECALM_S /* the wait before a retry at the same server; timeout connect, if that is shorter */

struct conditions {
    struct source_list on;
    bool layer7; /* more than a connection that failed */
    bool application;
};

static void condition_add(struct haproxy *in, struct conditions *c, const struct from *from,
                          const struct yaml_node *word)
{
    static const struct {
        const char *theirs;
        const char *ours[5];
    } rows[] = {{"conn-failure", {"connect-failure", "refused-stream", NULL}},
                {"empty-response", {"reset", NULL}},
                {"junk-response", {"reset", NULL}},
                {"response-timeout", {"timeout", NULL}},
                {"0rtt-rejected", {NULL}},
                {"none", {NULL}}};
    const char *text = word->text;
    if (strcmp(text, "all-retryable-errors") == 0) {
        static const char *const all[] = {
            "connect-failure", "refused-stream", "reset", "timeout", "500", "502", "503", "504"};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            source_list_add(&c->on, all[i]);
        }
        c->layer7 = true;
        c->application = true;
        return;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(text, rows[i].theirs) == 0) {
            for (size_t k = 0; rows[i].ours[k] != NULL; k++) {
                source_list_add(&c->on, rows[i].ours[k]);
                c->layer7 = c->layer7 || i > 0;
            }
            return;
        }
    }
    if (strlen(text) == 3 && strspn(text, "0123456789") == 3 && text[0] >= '4' && text[0] <= '5') {
        source_list_add(&c->on, text);
        c->layer7 = true;
        c->application = c->application || strcmp(text, "500") == 0 || strcmp(text, "501") == 0;
        return;
    }
    source_error(in->s, word, "bad-value", "%s: \"%.64s\" is no condition of HAProxy", from->path, text);
}

/* The retry conditions, if retries are on. */
static bool conditions_put(struct haproxy *in, struct section *section, struct emit_target *rules, uint64_t retries)
{
    struct source *s = in->s;
    struct conditions c = {.on = {.emit = s->emit}};
    const struct from off = haproxy_from(in, &section->settings.no_retry, "http-request disable-l7-retry", NULL);
    const struct from from = haproxy_from(in, &section->settings.retry_on, "retry-on", NULL);
    bool never = off.node != NULL && directive_words(off.node) == 2;
    for (uint32_t i = 1; from.node != NULL && i < directive_words(from.node); i++) {
        const struct yaml_node *word = directive_word(from.node, i);
        if (!never || strcmp(word->text, "conn-failure") == 0 || strcmp(word->text, "all-retryable-errors") == 0) {
            condition_add(in, &c, &from, word);
        }
    }
    if (from.node == NULL || (never && c.layer7)) {
        c = (struct conditions){.on = {.emit = s->emit}};
        source_list_add(&c.on, "connect-failure");
        source_list_add(&c.on, "refused-stream");
    }
    if (c.on.count == 0) {
        return false;
    }
    if (c.application && retries > 1) {
        source_no_equal(s, rules, &from,
                        "an error of the application is retried once per call, not as often as others");
    }
    bool spared = off.node != NULL && haproxy_has(off.node, "METH_POST");
    if (c.layer7 && !spared) {
        source_aside(s, rules, &from, "POST and PATCH are repeated there; here with `idempotent: true` only");
    }
    if (off.node != NULL && !never && !spared) {
        source_no_equal(s, rules, &off, "its condition is not looked at");
    }
    if (from.node == NULL) {
        s->file = section->line.file;
    }
    const struct from unwritten = {section->line.node, "retry-on", "HAProxy's default: conn-failure"};
    source_put_list(s, rules, "retryOn", &c.on, from.node != NULL ? &from : &unwritten);
    return true;
}

/* A retry goes to the same server after a second, unless redispatch lets another one have it at once. */
static void waits_put(struct haproxy *in, struct section *section, struct emit_target *rules, const struct from *count)
{
    struct source *s = in->s;
    const struct line *line = &section->settings.redispatch;
    bool on = line->node != NULL && directive_is(line->node, "option");
    const char *balance =
        section->settings.balance.node == NULL ? "roundrobin" : directive_text(section->settings.balance.node, 1);
    bool turns = strcmp(balance, "roundrobin") == 0 || strcmp(balance, "static-rr") == 0;
    becalm_ns wait = TURN_AROUND;
    becalm_ns connect = 0;
    const struct from connecting = haproxy_from(in, &section->settings.connect, "timeout connect", NULL);
    if (connecting.node != NULL && haproxy_time(s, &connecting, directive_word(connecting.node, 2), &connect) &&
        connect > 0 && connect < wait) {
        wait = connect;
    }
    if (on && section->hosts > 1 && turns) {
        const struct from from = haproxy_from(in, line, "option redispatch", "at once, at another server");
        source_put_duration(s, rules, "initialDelay", 0, &from);
        return;
    }
    s->file = section->line.file;
    if (section->hosts > 1) {
        const struct from from = {section->line.node, "retries", NULL};
        source_no_equal(s, rules, &from,
                        on ? "most of them go to the same server; here each goes to another host"
                           : "without `option redispatch` they go to the same server; here each goes to another host");
    }
    const struct from from = {count->node, "retries", "HAProxy waits so long before it asks a server again"};
    source_put_word(s, rules, "growth", "constant", &from);
    source_put_duration(s, rules, "initialDelay", wait, &from);
    source_put_word(s, rules, "jitter", "none", &from);
}

void haproxy_rules_put(struct haproxy *in, struct section *section, struct emit_target *rules)
{
    struct source *s = in->s;
    const char *file = s->file;
    uint64_t retries = RETRIES;
    becalm_ns time = 0;
    struct from from = haproxy_from(in, &section->settings.retries, "retries", NULL);
    if (from.node != NULL) {
        (void)source_integer(s, &(struct from){directive_word(from.node, 1), "retries", NULL}, &retries);
    } else {
        s->file = section->line.file;
        from = (struct from){section->line.node, "retries", "HAProxy's default"};
    }
    const char *count_file = s->file;
    bool on = retries > 0 && conditions_put(in, section, rules, retries);
    if (!on && retries > 0) {
        from = haproxy_from(in, &section->settings.retry_on, "retry-on", NULL);
        count_file = s->file;
        retries = 0;
    }
    s->file = count_file;
    source_put_integer(s, rules, "maxRetries", retries, &from);
    if (retries > 0) {
        waits_put(in, section, rules, &from);
    }
    from = haproxy_from(in, &section->settings.connect, "timeout connect", NULL);
    if (from.node != NULL && haproxy_time(s, &from, directive_word(from.node, directive_words(from.node) - 1), &time) &&
        time > 0) {
        source_put_duration(s, rules, "connectTimeout", time, &from);
    }
    from = haproxy_from(in, &section->settings.server, "timeout server", NULL);
    if (from.node != NULL && haproxy_time(s, &from, directive_word(from.node, directive_words(from.node) - 1), &time) &&
        time > 0) {
        source_put_duration(s, rules, "attemptTimeout", time, &from);
    }
    s->file = file;
}
