/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "health.h"

#include "health_probe.h"

#include "container.h"

#include "policy/value.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_WITHIN BECALM_S         /* the first check of a new host is sent within this time */
#define FULL_WAIT    (10 * BECALM_MS) /* before one that found no room is asked again, more or less */

/* A host that is checked. */
struct patient {
    struct patient *next;
    struct health *health;
    char *service;
    union address_socket address;
    const struct becalm_health_check *check;             /* of the snapshot that is held, like the next */
    char authority[ADDRESS_NAME_MAX + ADDRESS_TEXT_MAX]; /* the host as it is written; of SRV records its address */
    uint32_t introduces;                                 /* see struct health_probe_plan */
    bool h2;
    struct wire_host *tls;
    bool used; /* by the snapshot that is followed now */
    struct health_probe *probe;
    struct timer timer; /* the next check; while one is under way, its timeout */
    becalm_ns begun_at;
    uint32_t streak; /* verdicts in a row that differ from `failing` */
    bool failing;
    becalm_ns since; /* when it began to fail */
    struct health_verdict last;
    uint64_t passed;
    uint64_t failed;
};

struct health {
    struct loop *loop;
    struct log_source *log;
    struct snapshot *snapshot; /* NULL: none yet */
    struct patient *patients;
    uint32_t under_way;
    struct wire_room room;
    struct tls_counts counts;
};

static struct patient *patient_find(const struct health *health, const char *service,
                                    const union address_socket *address)
{
    struct patient *patient = health->patients;
    while (patient != NULL && (!address_equal(&patient->address, address) || strcmp(patient->service, service) != 0)) {
        patient = patient->next;
    }
    return patient;
}

/* ---- reports to the engine and the log ---- */

static struct becalm_hosts *hosts_of(const struct snapshot *snapshot, const struct snapshot_service *service)
{
    return snapshot->target[service->first_target].state->target.hosts;
}

/* Tells the engine which hosts of a service fail their checks. A host that is not checked passes. */
static void service_apply(const struct health *health, const struct snapshot *snapshot,
                          const struct snapshot_service *service)
{
    bool checked = service->service->health_check.kind != BECALM_HEALTH_CHECK_OFF;
    for (uint32_t i = 0; i < service->host_count; i++) {
        const struct snapshot_host *host = &service->host[i];
        const struct patient *patient =
            checked && host->known ? patient_find(health, service->service->name, &host->address) : NULL;
        becalm_hosts_check(hosts_of(snapshot, service), i, patient == NULL || !patient->failing);
    }
}

static void host_told(const struct patient *patient, const char *message, enum becalm_log_level level)
{
    const struct loop *loop = patient->health->loop;
    char text[ADDRESS_TEXT_MAX];
    struct log_pair pairs[4] = {
        {"service", LOG_TEXT, text_of(patient->service), 0},
        {"host", LOG_TEXT, {text, address_write(&patient->address, text, sizeof text)}, 0},
        {"why", LOG_TEXT, text_of(patient->last.why), 0},
        {"status", LOG_NUMBER, {0}, patient->last.status},
    };
    size_t count = patient->last.status == 0 ? 3 : 4;
    if (!patient->failing) {
        pairs[2] = (struct log_pair){"lasted_ms", LOG_MS, {0}, becalm_ns_since(loop->now, patient->since)};
        count = 3;
    }
    log_line(patient->health->log, level, loop->wall, message, pairs, count);
}

/* A host has begun to fail, or is well again. */
static void changed(const struct patient *patient)
{
    const struct health *health = patient->health;
    for (uint32_t i = 0; i < health->snapshot->service_count; i++) {
        const struct snapshot_service *service = &health->snapshot->service[i];
        if (strcmp(service->service->name, patient->service) != 0) {
            continue;
        }
        const struct becalm_hosts *hosts = hosts_of(health->snapshot, service);
        bool all = becalm_hosts_all_fail(hosts);
        service_apply(health, health->snapshot, service);
        host_told(patient, patient->failing ? "host fails its health checks" : "host passes its health checks again",
                  patient->failing ? BECALM_LOG_WARN : BECALM_LOG_INFO);
        if (!all && becalm_hosts_all_fail(hosts)) {
            const struct log_pair pair = {"service", LOG_TEXT, text_of(patient->service), 0};
            log_line(health->log, BECALM_LOG_WARN, health->loop->wall,
                     "all hosts fail their health checks: calls still go to them", &pair, 1);
        }
    }
}

/* ---- one check ---- */

/* Nine to eleven tenths of the interval behind the beginning of the last check, so that instances do not fall into
 * step. */
static void next_arm(struct patient *patient)
{
    struct loop *loop = patient->health->loop;
    becalm_ns tenth = patient->check->interval / 10;
    becalm_ns wait = becalm_ns_after(9 * tenth, becalm_rand_below(becalm_rand_next(&loop->random), 2 * tenth + 1));
    wheel_arm(&loop->wheel, &patient->timer, becalm_ns_max(loop->now, becalm_ns_after(patient->begun_at, wait)));
}

static void judge(struct patient *patient, struct health_verdict verdict)
{
    bool fails = verdict.why != NULL;
    patient->last = verdict;
    patient->passed += !fails;
    patient->failed += fails;
    patient->streak = fails == patient->failing ? 0 : patient->streak + 1;
    if (patient->streak >= (fails ? patient->check->unhealthy : patient->check->healthy)) {
        patient->streak = 0;
        patient->failing = fails;
        patient->since = fails ? patient->health->loop->now : patient->since;
        changed(patient);
    }
    next_arm(patient);
}

static void probe_over(struct patient *patient)
{
    patient->health->under_way -= patient->probe != NULL;
    patient->probe = NULL;
}

static void probed(void *self, struct health_verdict verdict)
{
    struct patient *patient = self;
    probe_over(patient);
    judge(patient, verdict);
}

static void probe_drop(struct patient *patient)
{
    health_probe_drop(patient->probe);
    probe_over(patient);
}

static void begin(struct patient *patient)
{
    struct health *health = patient->health;
    struct loop *loop = health->loop;
    if (health->under_way >= HEALTH_AT_ONCE) {
        wheel_arm(
            &loop->wheel, &patient->timer,
            becalm_ns_after(loop->now, FULL_WAIT + becalm_rand_below(becalm_rand_next(&loop->random), FULL_WAIT)));
        return;
    }
    patient->begun_at = loop->now;
    patient->probe = health_probe_begin(&(struct health_probe_plan){
        .loop = loop,
        .to = &patient->address,
        .check = patient->check,
        .tls = patient->tls,
        .room = &health->room,
        .authority = patient->check->host != NULL ? patient->check->host : patient->authority,
        .introduces = patient->introduces,
        .h2 = patient->h2,
        .done = probed,
        .self = patient,
    });
    if (patient->probe != NULL) {
        health->under_way++;
        wheel_arm(&loop->wheel, &patient->timer, becalm_ns_after(loop->now, patient->check->timeout));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
        next_arm(patient); /* the gateway itself failed, which says nothing about the host */
    } else {
        judge(patient, (struct health_verdict){.why = "it does not accept connections"});
    }
}

/* The loop handles events before timers, so an answer that has arrived by now has been read. */
static void timer_fires(struct timer *timer)
{
    struct patient *patient = CONTAINER_OF(timer, struct patient, timer);
    if (patient->probe == NULL) {
        begin(patient);
        return;
    }
    probe_drop(patient);
    judge(patient, (struct health_verdict){.why = "it did not answer in time"});
}

/* ---- the hosts that are checked ---- */

static void patient_free(struct patient *patient)
{
    probe_drop(patient);
    timer_disarm(&patient->timer);
    wire_host_drop(patient->tls);
    free(patient->service);
    free(patient);
}

static struct patient *patient_add(struct health *health, const char *service, const union address_socket *address)
{
    struct patient *patient = calloc(1, sizeof *patient);
    if (patient == NULL || (patient->service = strdup(service)) == NULL) {
        free(patient);
        return NULL;
    }
    patient->health = health;
    patient->address = *address;
    patient->timer.fire = timer_fires;
    patient->next = health->patients;
    health->patients = patient;
    return patient;
}

/* Takes the check's request from the new snapshot. A check in progress belongs to the old one. */
static bool patient_bind(struct patient *patient, const struct snapshot *snapshot, uint32_t service, uint32_t host)
{
    struct loop *loop = patient->health->loop;
    const struct snapshot_service *of = &snapshot->service[service];
    struct tls_context *tls = snapshot->tls == NULL ? NULL : snapshot->tls->service[service];
    bool first = patient->check == NULL;
    bool asked = patient->probe != NULL;
    char name[256];
    if (patient->used) {
        return true; /* two hosts of one address */
    }
    probe_drop(patient);
    wire_host_drop(patient->tls);
    patient->tls =
        tls == NULL ? NULL : wire_host_make(tls, snapshot_server_name(of->service, of->host[host].name, name));
    patient->check = &of->service->health_check;
    if (value_srv(of->host[host].name)) {
        (void)address_write(&patient->address, patient->authority, sizeof patient->authority);
    } else {
        (void)snprintf(patient->authority, sizeof patient->authority, "%s", of->host[host].name);
    }
    patient->introduces = (uint32_t)of->service->introduction;
    patient->h2 = of->service->protocol == BECALM_PROTOCOL_H2;
    patient->used = true;
    if (first) {
        becalm_ns within = becalm_ns_min(FIRST_WITHIN, patient->check->interval);
        wheel_arm(&loop->wheel, &patient->timer,
                  becalm_ns_after(loop->now, becalm_rand_below(becalm_rand_next(&loop->random), within)));
    } else if (asked) {
        wheel_arm(&loop->wheel, &patient->timer, loop->now);
    } else {
        next_arm(patient);
    }
    return tls == NULL || patient->tls != NULL;
}

static void patients_forget_unused(struct health *health)
{
    for (struct patient **link = &health->patients; *link != NULL;) {
        struct patient *patient = *link;
        if (patient->used) {
            link = &patient->next;
        } else {
            *link = patient->next;
            patient_free(patient);
        }
    }
}

static void service_follow(struct health *health, const struct snapshot *snapshot, uint32_t index)
{
    const struct snapshot_service *service = &snapshot->service[index];
    for (uint32_t i = 0; i < service->host_count; i++) {
        if (!service->host[i].known) {
            continue;
        }
        const union address_socket *address = &service->host[i].address;
        struct patient *patient = patient_find(health, service->service->name, address);
        if (patient == NULL) {
            patient = patient_add(health, service->service->name, address);
        }
        if (patient != NULL && !patient_bind(patient, snapshot, index, i)) {
            patient->used = false; /* no memory: it is not checked, and so it is in */
        }
    }
}

void health_follow(struct health *health, struct snapshot *snapshot)
{
    for (struct patient *patient = health->patients; patient != NULL; patient = patient->next) {
        patient->used = false;
    }
    for (uint32_t i = 0; i < snapshot->service_count; i++) {
        if (snapshot->service[i].service->health_check.kind != BECALM_HEALTH_CHECK_OFF) {
            service_follow(health, snapshot, i);
        }
    }
    patients_forget_unused(health);
    for (uint32_t i = 0; i < snapshot->service_count; i++) {
        service_apply(health, snapshot, &snapshot->service[i]);
    }
    snapshot_use(snapshot);
    snapshot_drop(health->snapshot);
    health->snapshot = snapshot;
}

bool health_read(const struct health *health, const char *service, const union address_socket *address,
                 struct admin_health *told)
{
    const struct patient *patient = patient_find(health, service, address);
    if (patient == NULL) {
        return false;
    }
    *told = (struct admin_health){
        .passes = !patient->failing,
        .why = patient->last.why,
        .status = patient->last.status,
        .passed = patient->passed,
        .failed = patient->failed,
    };
    return true;
}

struct health *health_make(struct loop *loop, struct log_source *log)
{
    struct health *health = calloc(1, sizeof *health);
    if (health != NULL) {
        health->loop = loop;
        health->log = log;
        health->room.counts = &health->counts;
    }
    return health;
}

void health_free(struct health *health)
{
    if (health == NULL) {
        return;
    }
    while (health->patients != NULL) {
        struct patient *patient = health->patients;
        health->patients = patient->next;
        patient_free(patient);
    }
    snapshot_drop(health->snapshot);
    wire_room_free(&health->room);
    free(health);
}
