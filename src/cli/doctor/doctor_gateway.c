/* SPDX-License-Identifier: MIT */
/* Checks the running gateway through its admin address. */
#define _GNU_SOURCE /* strptime, timegm */
#include "doctor.h"

#include <becalm/version.h>

#include "policy/file.h"
#include "top/link.h"
#include "top/trouble.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#define TOPIC        "gateway"
#define STEP_S       5  /* by which two clocks may differ */
#define NAMED_MAX    5u /* services in trouble that a line names */
#define UNAUTHORIZED 401

static void versions(struct doctor *d, const struct state *state)
{
    if (strcmp(state->version, BECALM_VERSION) != 0) {
        doctor_say(d, DOCTOR_WARNING, TOPIC,
                   "it is version %s, and this program is %s; do: restart it, so that it runs the installed version",
                   state->version, BECALM_VERSION);
    }
}

/* "2026-11-17T11:22:10.123Z" */
static void clocks(struct doctor *d, const struct state *state)
{
    struct tm tm = {0};
    if (strptime(state->time, "%Y-%m-%dT%H:%M:%S", &tm) == NULL) {
        return;
    }
    int64_t apart = (int64_t)timegm(&tm) - (int64_t)time(NULL);
    if (apart < -STEP_S || apart > STEP_S) {
        doctor_say(d, DOCTOR_WARNING, TOPIC,
                   "its clock is %" PRId64 " s away from the one here; do: run chrony or systemd-timesyncd on both",
                   apart);
    }
}

static void services(struct doctor *d, const struct state *state)
{
    static const uint64_t no_rates[STATE_COUNTS]; /* a single state has no rates: only breakers and hosts are checked */
    char named[400] = "";
    uint32_t count = 0;
    for (uint32_t i = 0; i < state->service_count; i++) {
        uint32_t troubles = trouble_find(&state->service[i], no_rates);
        enum trouble worst = 0;
        while (worst < TROUBLE_COUNT && (troubles >> worst & 1) == 0) {
            worst++;
        }
        if (worst == TROUBLE_COUNT || trouble_weight(worst) == TROUBLE_FINE) {
            continue;
        }
        size_t length = strlen(named);
        if (count++ < NAMED_MAX) {
            (void)snprintf(named + length, sizeof named - length, "%s%s (%s)", length == 0 ? "" : ", ",
                           state->service[i].name, trouble_word(worst));
        }
    }
    if (count > 0) {
        doctor_say(d, DOCTOR_WARNING, TOPIC, "%u of %u services in trouble: %s%s; do: `becalm top` says more", count,
                   state->service_count, named, count > NAMED_MAX ? ", ..." : "");
    } else {
        doctor_say(d, DOCTOR_OK, TOPIC, "%u service%s, none in trouble", state->service_count,
                   state->service_count == 1 ? "" : "s");
    }
}

static void examine(struct doctor *d, const char *admin, const struct state *state)
{
    doctor_say(d, DOCTOR_OK, TOPIC, "%s answers: version %s, up for %" PRIu64 " s", admin, state->version,
               state->uptime);
    versions(d, state);
    clocks(d, state);
    if (state->reload_failed) {
        doctor_say(
            d, DOCTOR_FAULT, TOPIC,
            "it runs an older policy, because it refused the present file: %s; do: fix the file, and the gateway "
            "reloads it by itself",
            state->reload_why);
    }
    if (state->draining) {
        doctor_say(d, DOCTOR_WARNING, TOPIC, "it is draining; do: wait for its end, then start it again");
    }
    services(d, state);
}

static void away(struct doctor *d, const struct link_place *place, const struct link *link, bool asked_for)
{
    if (link_status(link) == UNAUTHORIZED) {
        d->gateway_answers = true;
        doctor_say(d, DOCTOR_WARNING, TOPIC, "%s asks for a token; do: --token-file FILE", place->name);
    } else if (asked_for) {
        doctor_say(d, DOCTOR_FAULT, TOPIC, "%s: %s; do: is it started? `systemctl status becalm`", place->name,
                   link_why(link));
    } else {
        doctor_say(d, DOCTOR_OK, TOPIC, "none runs at %s", place->name);
    }
}

static void ask(struct doctor *d, const struct link_place *place, const char *token_file, bool asked_for)
{
    size_t length;
    struct link *link = link_new(place, token_file);
    d->no_memory = d->no_memory || link == NULL;
    if (link == NULL) {
        return;
    }
    link_ask(link, "/api/state", NULL);
    if (link_end(link) != LINK_DONE) {
        away(d, place, link, asked_for);
        link_free(link);
        return;
    }
    const char *text = link_text(link, &length);
    struct state *state = state_read(text, length);
    d->gateway_answers = state != NULL;
    if (state == NULL) {
        doctor_say(d, DOCTOR_FAULT, TOPIC, "%s answers, but is no gateway's admin address; do: --admin ADDRESS",
                   place->name);
    } else {
        examine(d, place->name, state);
        state_free(state);
    }
    link_free(link);
}

void doctor_gateway(struct doctor *d, const char *admin, const char *token_file)
{
    char why[LINK_WHY_MAX];
    char written[300];
    struct link_place place;
    const struct becalm_settings *settings = d->config == NULL ? NULL : becalm_config_settings(d->config);
    bool asked_for = admin != NULL;
    if (settings != NULL && admin == NULL) {
        if (settings->admin == NULL) {
            doctor_say(d, DOCTOR_OK, TOPIC, "the policy has no admin address to ask");
            return;
        }
        (void)snprintf(written, sizeof written, "%s%s", settings->admin_tls.tls ? "https://" : "", settings->admin);
        admin = written;
    }
    if (settings != NULL && token_file == NULL && !asked_for && settings->admin_token.path != NULL) {
        token_file = file_found(&settings->admin_token);
    }
    if (!link_place_parse(admin == NULL ? LINK_DEFAULT : admin, &place, why)) {
        doctor_say(d, DOCTOR_FAULT, TOPIC, "%s; do: --admin HOST:PORT or --admin unix:/path", why);
        return;
    }
    ask(d, &place, token_file, asked_for);
}
