/* SPDX-License-Identifier: MIT */
/* Heads of HTTP/2 that are accepted, and their form for hosts: docs/http2.md has a row for each. */
#include "h2_lab.h"

#define START ":scheme=http|:authority=a.example|:path=/a|"

/* The session's reaction to one request: its events up, and its frames down. */
static struct lab *request(const char *fields)
{
    struct lab *lab = lab_server();
    lab_head(lab, 1, LAB_END, fields);
    lab_feed(lab);
    return lab;
}

struct taken {
    const char *fields;
    const char *up;
    const char *head;
};

static void test_h2_head__becomes_a_head_of_http_1(void **state)
{
    static const struct taken rows[] = {
        {LAB_GET, "GET /a", "host=a.example|"},
        {":path=/a?b=c|:authority=a.example:81|:scheme=https|:method=GET|", "GET /a?b=c", "host=a.example:81|"},
        {":method=GET|:scheme=http|:path=/a|host=b.example|", "GET /a", "host=b.example|"},
        {LAB_GET "host=a.example|", "GET /a", "host=a.example|"},
        {LAB_GET "host=A.EXAMPLE|x=y|", "GET /a", "host=a.example|x=y|"},
        {":method=OPTIONS|:scheme=http|:authority=a.example|:path=*|", "OPTIONS *", "host=a.example|"},
        {":method=CONNECT|:authority=a.example:443|", "CONNECT a.example:443", "host=a.example:443|"},
        {LAB_GET "cookie=a=1|", "GET /a", "host=a.example|cookie=a=1|"},
        {LAB_GET "cookie=a=1|cookie=b=2|", "GET /a", "host=a.example|cookie=a=1; b=2|"},
        {LAB_GET "cookie=a=1|x=y|cookie=b=2|z=w|cookie=c=3|", "GET /a", "host=a.example|cookie=a=1; b=2; c=3|x=y|z=w|"},
        {LAB_GET "te=trailers|", "GET /a", "host=a.example|te=trailers|"},
        {LAB_GET "x-empty=|", "GET /a", "host=a.example|x-empty=|"},
        {LAB_GET "x=abc\tdefghi\xff\x80|", "GET /a", "host=a.example|x=abc\tdefghi\xff\x80|"},
        {":method=QUERY|" START, "QUERY /a", "host=a.example|"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct lab *lab = request(rows[i].fields);
        char up[64];
        snprintf(up, sizeof up, "request 1 %s end; end 1; ", rows[i].up);
        check_eq_str(lab->up, up);
        check_eq_str(lab->head, rows[i].head);
        lab_free(lab);
    }
}

/* Malformed for HTTP/2: the stream is reset, and the owner gets no event. */
static void test_h2_head__malformed_is_reset(void **state)
{
    static const char *const rows[] = {
        ":method=GET|:scheme=http|:path=/a|", /* neither authority nor Host */
        ":method=GET|:scheme=http|:authority=a.example|:path=*|",
        LAB_GET "Upper=x|",                   /* names are in lower case */
        LAB_GET "a b=x|",                     /* and tokens */
        LAB_GET "connection=close|",          /* for one connection */
        LAB_GET "transfer-encoding=chunked|", /* the same */
        LAB_GET "keep-alive=1|",              /* the same */
        LAB_GET "proxy-connection=close|",    /* the same */
        LAB_GET "upgrade=websocket|",         /* the same */
        LAB_GET "te=gzip|",                   /* only trailers */
        LAB_GET "x=a\nb|",                    /* line feed */
        LAB_GET "x=a\rb|",                    /* carriage return */
        LAB_GET "x= a|",                      /* blank before */
        LAB_GET "x=a |",                      /* blank behind */
        LAB_GET "x=a\x01|",                   /* control byte */
        LAB_GET ":path=/b|",                  /* a pseudo field twice */
        LAB_GET "x=y|:path=/b|",              /* or behind others */
        ":method=GET|:scheme=http|:path=/a|x=y|:authority=a.example|",
        ":method=GET|:scheme=http|:path=/a|host=a.example|host=a.example|",
        LAB_GET "x=a\x7f|",
        LAB_GET "x=abcd\x01"
                "fghijk|", /* among eight bytes, which are looked at together */
        LAB_GET "x=abcd\x7f"
                "fghijk|",
        LAB_GET "content-length=0|content-length=0|",
        ":method=GET|:method=POST|" START,                /* twice */
        ":method=GET|:scheme=http|:authority=a.example|", /* no path */
        ":method=GET|:scheme=http|:authority=a.example|:path=|",
        ":method=GET|:authority=a.example|:path=/a|", /* no scheme */
        START,                                        /* no method */
        LAB_GET ":status=200|",                       /* an answer's */
        LAB_GET ":protocol=websocket|",               /* was not announced */
        LAB_GET ":what=x|",                           /* unknown */
        LAB_GET "content-length=5|",                  /* and no body */
        LAB_GET "content-length=5|content-length=5|",
        LAB_GET "content-length=x|",
        ":method=G T|" START,
        ":method=GET|:scheme=http|:authority=a.example|:path=http://b.example/|",
        ":method=GET|:scheme=http|:authority=a.example|:path=a|",
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct lab *lab = request(rows[i]);
        if (strcmp(lab->down, "RST:1=1 ") != 0 || lab->up[0] != '\0') {
            print_error("row %zu: %s: down %s, up %s\n", i, rows[i], lab->down, lab->up);
            fail();
        }
        lab_free(lab);
    }
}

/* Well formed for HTTP/2, and could not be written to a host: it is told so. */
static void test_h2_head__what_http_1_refuses_is_told(void **state)
{
    static char many[16384];
    static char large[16384];
    static const struct {
        const char *fields;
        uint32_t status;
        const char *what;
    } rows[] = {
        {":method=GET|:scheme=http|:authority=u@a.example|:path=/a|", 400, "Host is not the name of a host"},
        {":method=GET|:scheme=http|:authority=a.example,b|:path=/a|", 400, "Host is not the name of a host"},
        {":method=GET|:scheme=http|:authority=a.example|:path=/a#b|", 400, "the target is no path and no http URL"},
        {":method=GET|:scheme=http|:authority=a.example|:path=/\xc3\xa4|", 400, "the target is malformed"},
        {":method=GET|:scheme=ftp|:authority=a.example|:path=/a|", 400, "the scheme is neither http nor https"},
        {LAB_GET "host=b.example|", 400, "Host is another than the authority"},
        {":method=CONNECT|:authority=a.example|", 400, "the target of CONNECT is not host:port"},
        {many, 431, "there are too many fields"},
        {large, 431, "the head is too large"},
    };
    (void)state;
    strcpy(many, LAB_GET);
    for (int i = 0; i < 130; i++) {
        strcat(many, "x=y|");
    }
    strcpy(large, LAB_GET "x=");
    memset(large + strlen(large), 'y', 9000);
    strcat(large, "|");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct lab *lab = request(rows[i].fields);
        char up[64];
        snprintf(up, sizeof up, "unfit 1 %u end; end 1; ", rows[i].status);
        check_eq_str(lab->up, up);
        check_eq_str(lab->verdict.what, rows[i].what);
        lab_free(lab);
    }
}

static void test_h2_head__a_length_is_held_against_the_body(void **state)
{
    (void)state;
    for (size_t length = 4; length <= 6; length++) {
        struct lab *lab = lab_server();
        lab->takes = true;
        lab_head(lab, 1, 0, LAB_POST "content-length=5|");
        lab_frame(lab, LAB_DATA, LAB_END, 1, "abcdef", length);
        check_true(lab_feed(lab));
        check_true((strstr(lab->up, "end 1; ") != NULL) == (length == 5));
        check_true((strcmp(lab->down, "RST:1=1 ") == 0) == (length != 5));
        lab_free(lab);
    }
}

static void test_h2_head__bodies_end_by_their_frames(void **state)
{
    static const struct {
        const char *fields;
        uint8_t flags;
        enum body_framing framing;
    } rows[] = {
        {LAB_POST, LAB_END, BODY_NONE},
        {LAB_POST, 0, BODY_OPEN},
        {LAB_POST "content-length=5|", 0, BODY_LENGTH},
        {LAB_POST "content-length=0|", LAB_END, BODY_LENGTH},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct lab *lab = lab_server();
        lab_head(lab, 1, rows[i].flags, rows[i].fields);
        check_true(lab_feed(lab));
        check_true(lab->framing == rows[i].framing);
        lab_free(lab);
    }
}

/* Crumbs of a cookie that stand behind other fields are put where the first one stands, which moves those others: not
 * for ever. Where they come one by one nothing is moved. */
static void test_h2_head__crumbs_move_only_so_much(void **state)
{
    (void)state;
    for (int scattered = 0; scattered < 2; scattered++) {
        struct lab *lab = lab_server();
        static char block[16384];
        static char fields[8192];
        size_t length = (size_t)snprintf(fields, sizeof fields, LAB_GET "cookie=a|%s=", scattered ? "x" : "cookie");
        memset(fields + length, 'v', 6000);
        snprintf(fields + length + 6000, sizeof fields - length - 6000, "|");
        length = lab_block(block, fields);
        memcpy(block + length, "\x60\1b", 3);  /* cookie: b, which enters the table ... */
        memset(block + length + 3, 0xbe, 300); /* ... and is named */
        lab_frame(lab, LAB_HEADERS, LAB_END | LAB_END_HEADERS, 1, block, length + 303);
        check_true(lab_feed(lab));
        check_eq_str(lab->up, scattered ? "unfit 1 431 end; end 1; " : "request 1 GET /a end; end 1; ");
        lab_free(lab);
    }
}

/* A pseudo field for which there was no room is not read when Host comes, whatever the memory held before. */
static void test_h2_head__what_had_no_room_is_not_looked_at(void **state)
{
    struct lab *lab = lab_new(H2_SERVER);
    struct h2_limits limits = lab_limits;
    char fields[1024];
    char many[160];
    (void)state;
    limits.head_bytes = 128;
    lab->scratch.size = 2 * limits.head_bytes + 64;
    lab->scratch.bytes = malloc(lab->scratch.size); /* so that a read beyond its end is seen */
    memset(lab->scratch.bytes, 'a', lab->scratch.size);
    memset(many, 'a', sizeof many);
    h2_session_free(lab->session);
    lab->session = h2_session_new(H2_SERVER, &limits, &lab_calls, lab, &lab->scratch);
    lab_bytes(lab, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
    lab_frame(lab, LAB_SETTINGS, 0, 0, NULL, 0);
    snprintf(fields, sizeof fields, ":scheme=http|:method=%.157s|:path=/%.157s|:authority=%.20s|host=%.20s|", many,
             many, many, many); /* the path fills it */
    lab_head(lab, 1, LAB_END, fields);
    check_true(lab_feed(lab));
    check_eq_str(lab->up, "unfit 1 431 end; end 1; ");
    free(lab->scratch.bytes);
    lab_free(lab);
}

BECALM_TESTS(cmocka_unit_test(test_h2_head__becomes_a_head_of_http_1),
             cmocka_unit_test(test_h2_head__malformed_is_reset),
             cmocka_unit_test(test_h2_head__what_http_1_refuses_is_told),
             cmocka_unit_test(test_h2_head__a_length_is_held_against_the_body),
             cmocka_unit_test(test_h2_head__bodies_end_by_their_frames),
             cmocka_unit_test(test_h2_head__crumbs_move_only_so_much),
             cmocka_unit_test(test_h2_head__what_had_no_room_is_not_looked_at))
