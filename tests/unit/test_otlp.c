/* SPDX-License-Identifier: MIT */
/* Notes of calls, and their exported spans. e2e/test_traces.py checks OTLP's schema. */
#include "http_lab.h"
#include "journal/otlp.h"

static union span_room room;

static void note_begin(uint32_t attempts)
{
    memset(&room, 0xee, sizeof room); /* nothing is read that was not written */
    room.note = (struct span_note){
        .spans = 1 + attempts,
        .attempts = attempts,
        .status = 200,
        .grpc_status = BECALM_GRPC_NONE,
        .reason = BECALM_WHY_OK,
        .flags = TRACE_FLAG_SAMPLED,
        .version = HTTP_1_1,
        .span = UINT64_C(0x00000000000000ab),
        .wall = UINT64_C(1700000000000000000),
        .took = 5 * BECALM_MS,
    };
    memcpy(room.note.trace_id, "0af7651916cd43dd8448eb211c80319c", TRACE_ID_LENGTH);
    for (uint32_t i = 0; i < attempts; i++) {
        room.note.attempt[i] = (struct span_attempt){
            .span = 0x100 + i,
            .sent = i * BECALM_MS,
            .took = BECALM_MS,
            .number = i,
            .status = 200,
            .grpc_status = BECALM_GRPC_NONE,
            .outcome = BECALM_OUTCOME_OK,
        };
    }
}

static void note_end(const char *method, const char *path)
{
    span_begin(&room);
    for (enum span_text i = 0; i < SPAN_TEXTS; i++) {
        const char *text = i == SPAN_METHOD ? method : i == SPAN_PATH ? path : i == SPAN_SERVICE ? "pay" : NULL;
        span_add_text(&room, i, text_of(text));
    }
    for (uint32_t i = 0; i + 1 < room.note.spans; i++) {
        span_add_host(&room, i, text_of(i % 2 == 0 ? "10.0.0.1:80" : "[::1]:8080"));
    }
    span_end(&room);
}

/* The export of the one note, from its spans on. */
static const char *exported(void)
{
    static char text[65536];
    struct buffer out = {.at = text, .size = sizeof text - 1};
    otlp_begin(&out, &(struct otlp_resource){"becalm", "0011"});
    otlp_note(&out, &room.note);
    otlp_end(&out);
    check_true(!out.full);
    text[out.length] = '\0';
    return strstr(text, "\"spans\":");
}

#define ATTRIBUTE(key, type, value) "{\"key\":\"" key "\",\"value\":{\"" type "\":" value "}}"
#define TEXT(key, value)            ATTRIBUTE(key, "stringValue", "\"" value "\"")
#define INT(key, value)             ATTRIBUTE(key, "intValue", "\"" value "\"")

static void test_otlp__a_call_and_its_attempt_as_a_whole(void **state)
{
    (void)state;
    note_begin(1);
    note_end("GET", "/a");
    check_eq_str(
        exported(), "\"spans\":[{\"traceId\":\"0af7651916cd43dd8448eb211c80319c\",\"spanId\":\"00000000000000ab\","
                    "\"flags\":257,\"name\":\"GET\",\"kind\":2,\"startTimeUnixNano\":\"1700000000000000000\","
                    "\"endTimeUnixNano\":\"1700000000005000000\",\"attributes\":[" TEXT("http.request.method", "GET") "," TEXT("url.path", "/a") "," TEXT("url.scheme", "http") "," TEXT(
                        "network.protocol.name",
                        "http") "," TEXT("network.protocol.version",
                                         "1.1") "," INT("http.response.status_code",
                                                        "200") "," TEXT("becalm.service",
                                                                        "pay") "," TEXT("becalm.reason",
                                                                                        "ok") "," INT("becalm.attempts",
                                                                                                      "1") "],"
                                                                                                           "\"status\":"
                                                                                                           "{}},"
                                                                                                           "{\"traceId"
                                                                                                           "\":"
                                                                                                           "\"0af765191"
                                                                                                           "6cd43dd8448"
                                                                                                           "eb211c80319"
                                                                                                           "c\","
                                                                                                           "\"spanId\":"
                                                                                                           "\"000000000"
                                                                                                           "0000100\","
                                                                                                           "\"parentSpa"
                                                                                                           "nId\":"
                                                                                                           "\"000000000"
                                                                                                           "00000ab\","
                                                                                                           "\"flags\":"
                                                                                                           "257,"
                                                                                                           "\"name\":"
                                                                                                           "\"GET\","
                                                                                                           "\"kind\":3,"
                                                                                                           "\"startTime"
                                                                                                           "UnixNano\":"
                                                                                                           "\"170000000"
                                                                                                           "0000000000"
                                                                                                           "\","
                                                                                                           "\"endTimeUn"
                                                                                                           "ixNano\":"
                                                                                                           "\"170000000"
                                                                                                           "0001000000"
                                                                                                           "\","
                                                                                                           "\"attribute"
                                                                                                           "s\":[" TEXT("http.request.method", "GET") "," TEXT("url.full", "http://10.0.0.1:80/a") "," TEXT(
                                                                                                               "server."
                                                                                                               "addres"
                                                                                                               "s",
                                                                                                               "10.0.0."
                                                                                                               "1") "," INT("server.port",
                                                                                                                            "80") "," INT("http.response.status_code",
                                                                                                                                          "200") "," TEXT("becalm.service",
                                                                                                                                                          "pay") "," TEXT("becalm.outcome",
                                                                                                                                                                          "ok") "],\"status\":{}}]}]}]}");
}

static void check_has(const char *text, bool has)
{
    if ((strstr(exported(), text) != NULL) != has) {
        fail_msg("%s%s: %s", has ? "" : "not ", text, exported());
    }
}

static void test_otlp__methods_that_nobody_knows_are_one_word(void **state)
{
    (void)state;
    note_begin(0);
    note_end("PURGE", "/a");
    check_has(TEXT("http.request.method", "_OTHER"), true);
    check_has(TEXT("http.request.method_original", "PURGE"), true);
    check_has("\"name\":\"HTTP\"", true);
}

static void test_otlp__errors_are_those_of_either_side(void **state)
{
    (void)state;
    static const struct {
        uint32_t status;
        enum becalm_outcome_kind outcome;
        const char *call; /* error.type; NULL: none */
        const char *attempt;
    } rows[] = {
        {404, BECALM_OUTCOME_PERMANENT, NULL, "404"},     {503, BECALM_OUTCOME_REJECTED, "503", "503"},
        {0, BECALM_OUTCOME_TIMED_OUT, "ok", "timed_out"}, {0, BECALM_OUTCOME_CANCELLED, "ok", NULL},
        {200, BECALM_OUTCOME_BROKEN, NULL, "broken"},     {304, BECALM_OUTCOME_OK, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[128];
        const char *types[] = {rows[i].call, rows[i].attempt};
        note_begin(1);
        room.note.status = rows[i].status;
        room.note.attempt[0].status = rows[i].status;
        room.note.attempt[0].outcome = rows[i].outcome;
        note_end("GET", "/");
        const char *half = strstr(exported(), "\"parentSpanId\"");
        for (int k = 0; k < 2; k++) {
            snprintf(text, sizeof text, TEXT("error.type", "%s"), types[k] == NULL ? "" : types[k]);
            const char *found = strstr(k == 0 ? exported() : half, types[k] == NULL ? "\"error.type\"" : text);
            check_true((found != NULL && (k == 1 || found < half)) == (types[k] != NULL));
            const char *code = strstr(k == 0 ? exported() : half, "\"status\":{\"code\":2}");
            check_true((code != NULL && (k == 1 || code < half)) == (types[k] != NULL));
        }
    }
}

static void test_otlp__grpc_is_named_by_its_method(void **state)
{
    (void)state;
    note_begin(1);
    room.note.grpc = true;
    room.note.grpc_status = 14;
    room.note.attempt[0].grpc_status = 5;
    note_end("POST", "/shop.Cart/Add");
    check_has("\"name\":\"shop.Cart/Add\"", true);
    check_has(TEXT("rpc.system", "grpc") "," TEXT("rpc.service", "shop.Cart") "," TEXT("rpc.method", "Add"), true);
    check_has(INT("rpc.grpc.status_code", "14") "," TEXT("error.type", "UNAVAILABLE"), true);
    check_has(INT("rpc.grpc.status_code", "5") "," TEXT("error.type", "NOT_FOUND"), true);
    room.note.grpc_status = 5; /* for the server, a 404 is the client's mistake */
    check_has(TEXT("error.type", "UNAVAILABLE"), false);
    note_begin(0);
    room.note.grpc = true;
    note_end("POST", "/");
    check_has("\"name\":\"POST\"", true);
}

static void test_otlp__retries_hedges_and_waits(void **state)
{
    (void)state;
    note_begin(2);
    room.note.gated = 2 * BECALM_MS;
    room.note.parked = 3 * BECALM_MS;
    room.note.attempt[1].hedge = true;
    room.note.attempt[1].waited = 1500 * BECALM_US;
    note_end("GET", "/");
    check_has(INT("http.request.resend_count", "0"), false);
    check_has(INT("http.request.resend_count", "1"), true);
    check_has(ATTRIBUTE("becalm.hedge", "boolValue", "true"), true);
    check_has(ATTRIBUTE("becalm.wait_ms", "doubleValue", "1.500"), true);
    check_has(TEXT("server.address", "::1") "," INT("server.port", "8080"), true);
    check_has(
        "\"events\":[{\"timeUnixNano\":\"1700000000002000000\",\"name\":\"becalm.gate\",\"attributes\":[" ATTRIBUTE(
            "becalm.wait_ms", "doubleValue",
            "2.000") "]},{\"timeUnixNano\":\"1700000000005000000\",\"name\":\"becalm.parked\"",
        true);
}

static void test_otlp__who_asked_is_the_parent_or_a_link(void **state)
{
    (void)state;
    note_begin(0);
    note_end("GET", "/");
    memcpy(room.note.from.trace_id, "11111111111111111111111111111111", TRACE_ID_LENGTH);
    memcpy(room.note.from.span_id, "2222222222222222", SPAN_ID_LENGTH);
    room.note.from.flags = 1;
    check_has("2222222222222222", false);
    room.note.from_what = SPAN_CHILD;
    check_has("\"parentSpanId\":\"2222222222222222\",\"flags\":769", true);
    room.note.from_what = SPAN_LINKED;
    check_has("\"parentSpanId\"", false);
    check_has(
        "\"links\":[{\"traceId\":\"11111111111111111111111111111111\",\"spanId\":\"2222222222222222\",\"flags\":769}]",
        true);
}

/* All that a note can hold, at its longest: the text may be hostile, and is cut. */
static void test_otlp__the_longest_note_is_taken_apart_as_it_was_made(void **state)
{
    (void)state;
    static char longest[2 * SPAN_TEXT_MAX];
    memset(longest, '\xff', sizeof longest);
    note_begin(BECALM_RECORD_MAX);
    span_begin(&room);
    for (enum span_text i = 0; i < SPAN_TEXTS; i++) {
        longest[0] = (char)('a' + i);
        span_add_text(&room, i, (struct becalm_text){longest, sizeof longest});
    }
    for (uint32_t i = 0; i < BECALM_RECORD_MAX; i++) {
        longest[0] = (char)('A' + i);
        span_add_host(&room, i, (struct becalm_text){longest, sizeof longest});
    }
    span_end(&room);
    check_true(room.note.bytes <= sizeof room && room.note.bytes % 8 == 0);
    for (enum span_text i = 0; i < SPAN_TEXTS; i++) {
        struct becalm_text text = span_text(&room.note, i);
        check_true(text.length == SPAN_TEXT_MAX && text.at[0] == (char)('a' + i));
    }
    for (uint32_t i = 0; i < BECALM_RECORD_MAX; i++) {
        struct becalm_text text = span_host(&room.note, i);
        check_true(text.length == SPAN_TEXT_MAX && text.at[0] == (char)('A' + i));
    }
    struct buffer out = {.bytes_max = 1 << 20};
    otlp_begin(&out, &(struct otlp_resource){"becalm", "0011"});
    otlp_note(&out, &room.note);
    otlp_end(&out);
    check_true(!out.full && memchr(out.at, '\xff', out.length) == NULL);
    buffer_free(&out);
}

static void test_otlp__what_a_collector_rejects_is_counted(void **state)
{
    (void)state;
    static const struct {
        const char *answer;
        uint64_t rejected;
    } rows[] = {
        {"", 0},
        {"{}", 0},
        {"{\"partialSuccess\":{}}", 0},
        {"{\"partialSuccess\":{\"rejectedSpans\":\"12\",\"errorMessage\":\"no\"}}", 12},
        {"{\"partialSuccess\": {\"rejectedSpans\": 3}}", 3},
        {"{\"partialSuccess\":{\"rejectedSpans\":", 0},
        {"\"rejectedSpans\"", 0},
        {"{\"partialSuccess\":{\"rejectedSpans\":\"99999999999999999999999999\"}}", 9999999999u},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_eq_u64(otlp_rejected(text_of(rows[i].answer)), rows[i].rejected);
    }
}

BECALM_TESTS(cmocka_unit_test(test_otlp__a_call_and_its_attempt_as_a_whole),
             cmocka_unit_test(test_otlp__methods_that_nobody_knows_are_one_word),
             cmocka_unit_test(test_otlp__errors_are_those_of_either_side),
             cmocka_unit_test(test_otlp__grpc_is_named_by_its_method),
             cmocka_unit_test(test_otlp__retries_hedges_and_waits),
             cmocka_unit_test(test_otlp__who_asked_is_the_parent_or_a_link),
             cmocka_unit_test(test_otlp__the_longest_note_is_taken_apart_as_it_was_made),
             cmocka_unit_test(test_otlp__what_a_collector_rejects_is_counted))
