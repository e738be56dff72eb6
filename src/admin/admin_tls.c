/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "admin_tls.h"

static void collect_side(struct admin_tls *tls, const struct gateway *gateway, enum tls_side side)
{
    for (uint32_t i = 0; i < TLS_RESULTS; i++) {
        tls->handshakes[tls->handshakes_count++] = (struct metrics_handshakes){
            .side = tls_side_word(side),
            .result = tls_result_word((enum tls_result)i),
            .count = atomic_load_explicit(&gateway->tls.count[side][i], memory_order_relaxed),
        };
    }
}

void admin_tls_collect(struct admin_tls *tls, const struct gateway *gateway, const struct snapshot *snapshot)
{
    struct tls_expiry expiry[ADMIN_CERTIFICATES];
    tls->handshakes_count = tls->certificate_count = 0;
    if (snapshot->tls == NULL) {
        return;
    }
    for (uint32_t side = 0; side < TLS_SIDES; side++) {
        if (tls_set_has(snapshot->tls, (enum tls_side)side)) {
            collect_side(tls, gateway, (enum tls_side)side);
        }
    }
    uint32_t count = tls_set_certificates(snapshot->tls, expiry, ADMIN_CERTIFICATES);
    tls->certificate_count = count < ADMIN_CERTIFICATES ? count : ADMIN_CERTIFICATES;
    for (uint32_t i = 0; i < tls->certificate_count; i++) {
        uint64_t at = expiry[i].at > 0 ? (uint64_t)expiry[i].at : 0;
        tls->certificate[i] = (struct metrics_certificate){.file = expiry[i].file, .expires = at};
    }
}

void admin_tls_state(struct buffer *page, const struct gateway *gateway, const struct snapshot *snapshot)
{
    struct admin_tls tls;
    admin_tls_collect(&tls, gateway, snapshot);
    if (tls.handshakes_count == 0) {
        return;
    }
    buffer_json_open(page, "tls", '{');
    buffer_json_open(page, "handshakes", '[');
    for (uint32_t i = 0; i < tls.handshakes_count; i++) {
        buffer_json_open(page, NULL, '{');
        buffer_json_chars(page, "side", tls.handshakes[i].side);
        buffer_json_chars(page, "result", tls.handshakes[i].result);
        buffer_json_number(page, "count", tls.handshakes[i].count);
        buffer_json_close(page, '}');
    }
    buffer_json_close(page, ']');
    buffer_json_open(page, "certificates", '[');
    for (uint32_t i = 0; i < tls.certificate_count; i++) {
        buffer_json_open(page, NULL, '{');
        buffer_json_chars(page, "file", tls.certificate[i].file);
        buffer_json_number(page, "expires", tls.certificate[i].expires);
        buffer_json_close(page, '}');
    }
    buffer_json_close(page, ']');
    buffer_json_close(page, '}');
}
