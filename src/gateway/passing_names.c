/* SPDX-License-Identifier: MIT */
#include "passing_names.h"

#include <stdlib.h>

struct passing_names {
    struct gateway *gateway;
    struct resolver *resolver;
    struct question *questions;
};

/* One name, until it is forgotten. */
struct question {
    struct question *next;
    struct question **link;
    struct passing_names *names;
    struct passing_host *host;
    struct resolve *resolve;
};

struct passing_names *passing_names_make(struct gateway *gateway, struct resolver *resolver)
{
    struct passing_names *names = calloc(1, sizeof *names);
    if (names != NULL) {
        *names = (struct passing_names){.gateway = gateway, .resolver = resolver};
    }
    return names;
}

static void resolved(const struct resolve_result *result, void *data)
{
    const struct question *question = data;
    struct gateway *gateway = question->names->gateway;
    passing_answer(&gateway->passing, question->host, result->addresses, result->count);
    gateway_order_all(gateway, WORKER_NAMES);
}

/* Out of memory: the name will not be resolved, and counts as a name without addresses. */
static void ask(struct passing_names *names, struct passing_host *host, becalm_ns now)
{
    struct question *question = calloc(1, sizeof *question);
    struct resolve_request request = {
        .name = host->name.text, .port = host->name.port, .each = resolved, .data = question};
    if (question != NULL) {
        *question = (struct question){.names = names, .host = host};
        question->resolve = resolve_start(names->resolver, &request, now);
    }
    if (question == NULL || question->resolve == NULL) {
        free(question);
        passing_answer(&names->gateway->passing, host, NULL, 0);
        gateway_order_all(names->gateway, WORKER_NAMES);
        return;
    }
    host->question = question;
    question->next = names->questions;
    question->link = &names->questions;
    if (question->next != NULL) {
        question->next->link = &question->next;
    }
    names->questions = question;
}

void passing_names_ask(struct passing_names *names, becalm_ns now)
{
    struct passing_host *host;
    while ((host = passing_next(&names->gateway->passing)) != NULL) {
        ask(names, host, now);
    }
}

static void question_end(struct question *question)
{
    *question->link = question->next;
    if (question->next != NULL) {
        question->next->link = question->link;
    }
    resolve_stop(question->names->resolver, question->resolve);
    free(question);
}

void passing_names_sweep(struct passing_names *names, becalm_ns now)
{
    struct passing_host *host;
    while ((host = passing_unused(&names->gateway->passing, now)) != NULL) {
        if (host->question != NULL) {
            question_end(host->question);
        }
        free(host);
    }
}

/* The hosts are freed with the gateway: workers may look at them until they have ended. */
void passing_names_free(struct passing_names *names)
{
    while (names != NULL && names->questions != NULL) {
        question_end(names->questions);
    }
    free(names);
}
