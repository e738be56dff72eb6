/* SPDX-License-Identifier: MIT */
/* Heads as HPACK packs them: the examples of RFC 7541, and nghttp2 understands all heads of our encoder. */
#include "allocator.h"
#include "check.h"

#include "h2_unpacked.h"

#include "h2/h2_huffman.h"
#include "h2/h2_static.h"

#include <stdio.h>

static bool packs;              /* allocations count for the encoder from here on */
static uint32_t before_failure; /* which allocation of it fails; 0: none */
static int64_t alive;           /* bytes */
#if BECALM_OWN_ALLOCATOR
#include <malloc.h>

BECALM_VISIBLE void *malloc(size_t size)
{
    void *memory = packs && before_failure > 0 && --before_failure == 0 ? NULL : __libc_malloc(size);
    alive += memory == NULL ? 0 : (int64_t)malloc_usable_size(memory);
    return memory;
}

BECALM_VISIBLE void free(void *memory)
{
    alive -= memory == NULL ? 0 : (int64_t)malloc_usable_size(memory);
    __libc_free(memory);
}
#endif

#define FIELDS_MAX 32u
#define BYTES_MAX  65536u

/* Ours, and a peer that listens. */
struct talk {
    struct h2_packer packer;
    nghttp2_hd_inflater *peer;
    struct h2_field field[FIELDS_MAX]; /* the head */
    size_t count;
    char bytes[BYTES_MAX]; /* it packed */
    size_t length;
};
static struct talk talk;

static void talk_end(void)
{
    h2_packer_free(&talk.packer);
    nghttp2_hd_inflate_del(talk.peer);
}

static struct becalm_text text_of(const char *chars)
{
    return (struct becalm_text){chars, strlen(chars)};
}

static void add(const char *name, const char *value, enum h2_remembering remembering)
{
    talk.field[talk.count++] =
        (struct h2_field){.name = text_of(name), .value = text_of(value), .remembering = (uint8_t)remembering};
}

/* Packs it, and the peer must understand it. */
static void say(void)
{
    size_t bytes = 0;
    for (size_t i = 0; i < talk.count; i++) {
        bytes += talk.field[i].name.length + talk.field[i].value.length;
    }
    packs = true;
    talk.length = h2_pack(&talk.packer, talk.field, talk.count, talk.bytes);
    packs = false;
    check_between_u64(talk.length, 0, h2_pack_bound(talk.count, bytes));
    const char *wrong = h2_unpacked(talk.peer, talk.bytes, talk.length, talk.field, talk.count);
    check_eq_str(wrong == NULL ? "" : wrong, "");
    check_eq_u64(nghttp2_hd_inflate_get_dynamic_table_size(talk.peer), talk.packer.bytes);
    check_between_u64(talk.packer.bytes, 0, talk.packer.limit);
}

/* The peer says how large its table may be. */
static void limit(uint32_t bytes)
{
    check_eq_u64((uint64_t)nghttp2_hd_inflate_change_table_size(talk.peer, bytes), 0);
    h2_packer_limit(&talk.packer, bytes);
}

static void talk_begin(uint32_t bytes)
{
    talk = (struct talk){0};
    h2_packer_init(&talk.packer, NULL, 4096);
    check_eq_u64((uint64_t)nghttp2_hd_inflate_new(&talk.peer), 0);
    limit(bytes);
    say(); /* a head without fields tells that */
}

/* A head of "name: value" lines, all of them remembered. */
static void say_lines(const char *const *lines)
{
    talk.count = 0;
    for (; lines[0] != NULL; lines += 2) {
        add(lines[0], lines[1], H2_REMEMBERED);
    }
    say();
}

static void check_said(const char *hex)
{
    static char said[2 * BYTES_MAX + 1];
    for (size_t i = 0; i < talk.length; i++) {
        snprintf(said + 2 * i, 3, "%02x", (unsigned char)talk.bytes[i]);
    }
    said[2 * talk.length] = '\0';
    check_eq_str(said, hex);
}

/* ---- tables ---- */

static void test_h2_packer__knows_all_that_everybody_knows(void **state)
{
    (void)state;
    talk_begin(4096);
    for (uint32_t i = 1; i <= H2_STATIC_COUNT; i++) {
        uint8_t indexed = (uint8_t)(0x80 | i);
        nghttp2_nv field;
        int flags = 0;
        check_eq_u64((uint64_t)nghttp2_hd_inflate_hd2(talk.peer, &field, &flags, &indexed, 1, 1), 1);
        struct becalm_text name = {(const char *)field.name, field.namelen};
        struct becalm_text value = {(const char *)field.value, field.valuelen};
        uint32_t first = h2_static_name(name);
        check_between_u64(first, 1, i);
        check_eq_u64(h2_static_field(first, value), i);
        check_eq_u64(h2_static_field(first, text_of("none of them")), 0);
        nghttp2_hd_inflate_end_headers(talk.peer);
    }
    check_eq_u64(h2_static_name(text_of("")), 0);
    check_eq_u64(h2_static_name(text_of("x-own")), 0);
    check_eq_u64(h2_static_name(text_of("via1")), 0);
    check_eq_u64(h2_static_name(text_of("a-name-that-is-longer-than-any-of-theirs")), 0);
    talk_end();
}

/* Each byte, among others with codes so short that the whole text gets shorter. */
static void test_h2_packer__has_a_code_for_each_byte(void **state)
{
    (void)state;
    talk_begin(0);
    for (int i = 0; i < 256; i++) {
        char value[24];
        memset(value, 'e', sizeof value);
        value[7] = (char)i;
        talk.count = 1;
        talk.field[0] = (struct h2_field){.name = text_of("x"), .value = {value, sizeof value}};
        say();
        check_true((talk.bytes[talk.length - 1 - h2_huffman_size(talk.field[0].value)] & 0x80) != 0);
    }
    talk_end();
}

static void test_h2_packer__shortens_only_what_becomes_shorter(void **state)
{
    char to[64];
    (void)state;
    check_true(h2_huffman_put(to, text_of("")) == NULL);
    check_true(h2_huffman_put(to, text_of("e")) == NULL);  /* 5 bits are a byte, too */
    check_true(h2_huffman_put(to, text_of("ee")) == NULL); /* 10 are two */
    check_true(h2_huffman_put(to, text_of("eee")) == to + 2);
    check_true(h2_huffman_put(to, text_of("&&&&")) == NULL); /* 8 each */
    check_true(h2_huffman_put(to, text_of("&&&&&&&&")) == NULL);
    check_true(h2_huffman_put(to, text_of("&&&&&&&e")) == NULL);
    check_true(h2_huffman_put(to, text_of("&&&&&eee")) == to + 7);
    check_true(h2_huffman_put(to, text_of("\x01\x02\x03\x04\x05\x06")) == NULL); /* 28 each */
    check_eq_u64(h2_huffman_size(text_of("&&&&eeee")), 7);
    check_eq_u64(h2_huffman_size(text_of("")), 0);
}

/* ---- the examples of RFC 7541, appendix C ---- */

static void test_h2_packer__numbers_are_those_of_c_1(void **state)
{
    (void)state;
    talk_begin(4096);
    h2_packer_limit(&talk.packer, 10);
    say();
    check_said("2a");
    h2_packer_limit(&talk.packer, 1337);
    say();
    check_said("3f9a0a");
    talk_end();
}

static void test_h2_packer__requests_are_those_of_c_4(void **state)
{
    static const char *const first[] = {":method", "GET",        ":scheme",         "http", ":path",
                                        "/",       ":authority", "www.example.com", NULL};
    static const char *const second[] = {":method",       "GET",      ":scheme",    "http",
                                         ":path",         "/",        ":authority", "www.example.com",
                                         "cache-control", "no-cache", NULL};
    static const char *const third[] = {":method",    "GET",          ":scheme",    "https",
                                        ":path",      "/index.html",  ":authority", "www.example.com",
                                        "custom-key", "custom-value", NULL};
    (void)state;
    talk_begin(4096);
    say_lines(first);
    check_said("828684418cf1e3c2e5f23a6ba0ab90f4ff");
    check_eq_u64(talk.packer.bytes, 57);
    say_lines(second);
    check_said("828684be5886a8eb10649cbf");
    check_eq_u64(talk.packer.bytes, 110);
    say_lines(third);
    check_said("828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf");
    check_eq_u64(talk.packer.bytes, 164);
    talk_end();
}

/* With entries that have to go. Of a text that would stay as long as it is the example is Huffman-coded; ours is not.
 */
static void test_h2_packer__answers_are_those_of_c_6(void **state)
{
    static const char *const first[] = {":status",
                                        "302",
                                        "cache-control",
                                        "private",
                                        "date",
                                        "Mon, 21 Oct 2013 20:13:21 GMT",
                                        "location",
                                        "https://www.example.com",
                                        NULL};
    static const char *const second[] = {":status",
                                         "307",
                                         "cache-control",
                                         "private",
                                         "date",
                                         "Mon, 21 Oct 2013 20:13:21 GMT",
                                         "location",
                                         "https://www.example.com",
                                         NULL};
    static const char *const third[] = {":status",
                                        "200",
                                        "cache-control",
                                        "private",
                                        "date",
                                        "Mon, 21 Oct 2013 20:13:22 GMT",
                                        "location",
                                        "https://www.example.com",
                                        "content-encoding",
                                        "gzip",
                                        "set-cookie",
                                        "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
                                        NULL};
    (void)state;
    talk_begin(256);
    say_lines(first);
    check_said(
        "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3");
    check_eq_u64(talk.packer.bytes, 222);
    say_lines(second);
    check_said("4803333037c1c0bf"); /* 4883640effc1c0bf */
    check_eq_u64(talk.packer.bytes, 222);
    say_lines(third);
    check_said("88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd5b3960d5a"
               "f27087f36"
               "72c1ab270fb5291f9587316065c003ed4ee5b1063d5007");
    check_eq_u64(talk.packer.bytes, 215);
    talk_end();
}

/* ---- the table ---- */

static void test_h2_packer__secrets_are_told_as_such_and_never_remembered(void **state)
{
    (void)state;
    talk_begin(4096);
    for (int i = 0; i < 3; i++) {
        talk.count = 0;
        add("authorization", "secret", H2_SECRET);
        add("x-token", "secret", H2_SECRET);
        add("authorization", "", H2_SECRET); /* which is in the static table */
        add("etag", "new each time", H2_SAID);
        say();
        check_eq_u64(talk.packer.bytes, 0);
        check_eq_u64((unsigned char)talk.bytes[0], 0x1f);
        check_eq_u64((unsigned char)talk.bytes[1], 23 - 15);
    }
    talk_end();
}

/* A name that has entered the table is a number, also where the value is a secret. */
static void test_h2_packer__finds_names_beside_other_values(void **state)
{
    (void)state;
    talk_begin(4096);
    add("x-own", "1", H2_REMEMBERED);
    add("x-own", "2", H2_REMEMBERED);
    add("x-own", "3", H2_SECRET);
    add("x-own", "1", H2_REMEMBERED);
    say();
    check_said("40"
               "84f2b1fc55"
               "0131"
               "7e"
               "0132"
               "1f2f"
               "0133"
               "bf");
    talk_end();
}

/* A field in the table is written in full where its sender has marked it; so is one that is never entered, whose value
 * is not looked up. The names of both are looked up. */
static void test_h2_packer__what_is_not_remembered_is_no_number_although_it_stands_in_the_table(void **state)
{
    (void)state;
    talk_begin(4096);
    add("x-own", "1", H2_REMEMBERED);
    add("x-own", "1", H2_SECRET);
    add("x-own", "1", H2_SAID);
    add("x-own", "1", H2_REMEMBERED);
    add(":path", "/", H2_SECRET);
    add(":path", "/", H2_SAID);
    say();
    check_said("40"
               "84f2b1fc55"
               "0131"
               "1f2f"
               "0131"
               "0f2f"
               "0131"
               "be"
               "14"
               "012f"
               "84");
    talk_end();
}

/* A name is found by its id; a name without an id is found, too, whichever of the two was entered. */
static void test_h2_packer__ids_of_names_change_nothing(void **state)
{
    (void)state;
    talk_begin(4096);
    for (uint8_t i = 0; i < 40; i++) {
        talk.count = 0;
        add("x-one", "same", H2_REMEMBERED);
        add("x-two", "same", H2_REMEMBERED);
        talk.field[0].name_id = i % 2 == 0 ? 1 : 0;
        talk.field[1].name_id = i % 4 < 2 ? 2 : 0;
        say();
    }
    check_between_u64(talk.packer.bytes, 2 * 41, 4 * 41);
    talk_end();
}

/* More names than there are slots: some share one. */
static void test_h2_packer__names_in_one_slot_are_not_mixed_up(void **state)
{
    static char names[60][8];
    (void)state;
    talk_begin(4096);
    for (uint32_t round = 0; round < 2; round++) {
        for (uint8_t i = 0; i < 60; i++) {
            snprintf(names[i], sizeof names[i], "x-%u", i);
            talk.count = 0;
            add(names[i], "v", round == 0 ? H2_REMEMBERED : H2_SECRET);
            talk.field[0].name_id = i < 40 ? i + 1 : 0;
            say();
        }
    }
    talk_end();
}

/* Fields whose hashes are the same: two values of one name, and two names with one value. */
static void test_h2_packer__fields_with_one_hash_are_not_mixed_up(void **state)
{
    (void)state;
    talk_begin(4096);
    for (uint32_t round = 0; round < 2; round++) {
        talk.count = 0;
        add("x-same", "x-4b29d34d", H2_REMEMBERED);
        add("x-same", "x-d0026b14", H2_REMEMBERED);
        add("x-ddd544e1", "y", H2_REMEMBERED);
        add("x-5aa66904", "y", H2_REMEMBERED);
        say();
    }
    check_said("c1c0bfbe");
    talk_end();
}

/* Two names with the same hash: neither is written with the index of the other. */
static void test_h2_packer__names_with_one_hash_are_not_mixed_up(void **state)
{
    (void)state;
    talk_begin(4096);
    add("x-338e247c", "1", H2_REMEMBERED);
    add("x-1c498716", "2", H2_SECRET);
    add("x-1c498716", "3", H2_REMEMBERED);
    add("x-338e247c", "4", H2_SAID);
    say();
    talk_end();
}

/* An entry that would push out nearly all others is not worth it. */
static void test_h2_packer__remembers_nothing_that_is_too_large(void **state)
{
    static char value[4000];
    (void)state;
    memset(value, 'a', 3072 - 32 - 1);
    talk_begin(4096);
    add("x", value, H2_REMEMBERED);
    say();
    check_eq_u64(talk.packer.bytes, 3072);
    memset(value, 'a', 3072 - 32);
    talk.count = 0;
    add("x", value, H2_REMEMBERED);
    say();
    check_eq_u64(talk.packer.bytes, 3072);
    talk_end();
}

/* ---- the size of the table ---- */

static void test_h2_packer__tells_the_peer_what_became_of_its_limits(void **state)
{
    (void)state;
    talk_begin(4096);
    add(":method", "GET", H2_REMEMBERED);
    add("x", "y", H2_REMEMBERED);
    say();
    check_said("8240"
               "0178"
               "0179");
    limit(4096); /* it was that */
    say();
    check_said("82be");
    limit(100);
    say();
    check_said("3f45"
               "82be");
    say();
    check_said("82be");
    limit(0); /* the smallest counts, and the last */
    limit(50);
    limit(4096);
    say();
    check_said("20"
               "3fe11f"
               "8240"
               "0178"
               "0179");
    limit(50);
    limit(4096);
    say();
    check_said("3f13"
               "3fe11f"
               "82be");
    limit(0);
    say();
    check_said("20"
               "8200"
               "0178"
               "0179");
    check_eq_u64(talk.packer.bytes, 0);
    limit(33); /* too little for any entry */
    say();
    check_said("3f02"
               "8200"
               "0178"
               "0179");
    limit(4096);
    limit(33);
    say();
    check_said("3f02"
               "8200"
               "0178"
               "0179");
    talk_end();
}

/* Heads that the peer never sees: its table lacks their entries. */
static void test_h2_packer__forgets_what_the_peer_has_not_seen(void **state)
{
    (void)state;
    talk_begin(4096);
    add("x", "seen", H2_REMEMBERED);
    say();
    add("x", "lost", H2_REMEMBERED);
    (void)h2_pack(&talk.packer, talk.field, talk.count, talk.bytes);
    limit(200); /* and the lost one had told it */
    (void)h2_pack(&talk.packer, talk.field, talk.count, talk.bytes);
    h2_packer_forget(&talk.packer);
    say();
    check_true(talk.bytes[0] == 0x20);
    check_eq_u64(talk.packer.bytes, 2 * 37);
    limit(0);
    (void)h2_pack(&talk.packer, talk.field, talk.count, talk.bytes);
    h2_packer_forget(&talk.packer);
    say();
    check_true(talk.bytes[0] == 0x20);
    talk_end();
}

/* ---- any heads ---- */

static uint64_t random_state;

static uint32_t any(uint32_t below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 33) % below;
}

static void add_any(void)
{
    static const char *const names[] = {"via", "x-own", ":path", ":status", "x-another", "server", "forwarded"};
    static char room[FIELDS_MAX][700];
    char *value = room[talk.count];
    uint32_t length = any(20) == 0 ? any(699) : any(4);
    for (uint32_t i = 0; i < length; i++) {
        value[i] = "abZ9\x7f"[any(5)];
    }
    value[length] = '\0';
    uint32_t name = any(7);
    add(names[name], value, (enum h2_remembering)(any(8) == 0 ? 1 + any(2) : 0));
    talk.field[talk.count - 1].name_id = name % 2 == 0 ? (uint8_t)(name + 1) : 0;
}

static void say_any_heads(uint32_t heads)
{
    for (uint32_t i = 0; i < heads; i++) {
        if (any(10) == 0) {
            limit(any(4) == 0 ? 0 : any(4097));
        }
        talk.count = 0;
        for (uint32_t fields = any(12); fields > 0; fields--) {
            add_any();
        }
        say();
    }
}

static void test_h2_packer__peers_understand_any_heads(void **state)
{
    (void)state;
    for (random_state = 1; random_state <= 20; random_state++) {
        uint64_t seed = random_state;
        talk_begin(4096);
        say_any_heads(400);
        talk_end();
        random_state = seed;
    }
}

/* Whichever allocation fails, the peer hears all. */
static void test_h2_packer__without_memory_fields_are_said_all_the_same(void **state)
{
    (void)state;
    if (!BECALM_OWN_ALLOCATOR) {
        skip();
    }
    for (uint32_t which = 1; which <= 100; which++) {
        random_state = 7;
        talk_begin(4096);
        before_failure = which;
        say_any_heads(60);
        check_eq_u64(before_failure, 0); /* it has failed */
        talk_end();
    }
}

/* ---- memory ---- */

/* The least entries, of which there can be the most. */
static void test_h2_packer__holds_little_more_than_its_limit(void **state)
{
    char value[16];
    (void)state;
    if (!BECALM_OWN_ALLOCATOR) {
        skip();
    }
    talk_begin(4096);
    int64_t before = alive;
    for (uint32_t i = 0; i < 1000; i++) {
        snprintf(value, sizeof value, "%u", i);
        struct h2_field field = {.name = text_of("x"), .value = text_of(value)};
        (void)h2_pack(&talk.packer, &field, 1, talk.bytes);
    }
    check_between_u64((uint64_t)(alive - before), 4096, 2 * 4096);
    h2_packer_free(&talk.packer);
    check_eq_u64((uint64_t)(alive - before), 0);
    talk_end();
}

/* The memory of an entry goes back into the pool by its requested size: the next entry of that size needs no new
 * memory. With another size, a larger entry could get it. */
static void test_h2_packer__gives_its_memory_back_as_it_took_it(void **state)
{
    static struct blocks blocks;
    (void)state;
    if (!BECALM_OWN_ALLOCATOR || !BLOCKS_KEEPS) {
        skip();
    }
    talk_begin(4096);
    talk.packer.blocks = &blocks;
    for (int i = 0; i < 2; i++) {
        before_failure = i == 0 ? 0 : 1;
        talk.count = 0;
        add("x-a-name-of-more-than-32-bytes-of-length", "a value that has more than 32 bytes, too", H2_REMEMBERED);
        say();
        check_true(talk.packer.bytes > 0);
        h2_packer_forget(&talk.packer);
    }
    check_eq_u64(before_failure, 1); /* there was no malloc() */
    before_failure = 0;
    talk_end();
    blocks_empty(&blocks);
}

/* Requests and answers as they pass a gateway: the bytes beside those of nghttp2. */
static void test_h2_packer__takes_no_more_bytes_than_nghttp2(void **state)
{
    static const char *const request[] = {":method",
                                          "POST",
                                          ":scheme",
                                          "http",
                                          ":authority",
                                          "127.0.0.1:34257",
                                          "user-agent",
                                          "h2load nghttp2/1.52.0",
                                          "content-type",
                                          "application/grpc",
                                          "x-forwarded-for",
                                          "127.0.0.1",
                                          "x-forwarded-proto",
                                          "http",
                                          "x-forwarded-host",
                                          "127.0.0.1:34257",
                                          "forwarded",
                                          "for=127.0.0.1;host=\"127.0.0.1:34257\";proto=http",
                                          "via",
                                          "2 becalm (4fa55e16032f1322)",
                                          "x-envoy-attempt-count",
                                          "1",
                                          "te",
                                          "trailers",
                                          NULL};
    nghttp2_hd_deflater *theirs;
    size_t ours_bytes = 0;
    size_t their_bytes = 0;
    (void)state;
    talk_begin(4096);
    check_eq_u64((uint64_t)nghttp2_hd_deflate_new(&theirs, 4096), 0);
    for (int i = 0; i < 200; i++) {
        char id[40];
        char path[40];
        nghttp2_nv field[FIELDS_MAX];
        uint8_t bytes[2048];
        snprintf(id, sizeof id, "4fa55e16032f1322f002aec573%06x", 40503u * (uint32_t)i & 0xffffff);
        snprintf(path, sizeof path, "/shop.Ledger/Pay%d", i);
        talk.count = 0;
        for (const char *const *line = request; *line != NULL; line += 2) {
            add(line[0], line[1], H2_REMEMBERED);
        }
        add(":path", path, H2_SAID);
        add("content-length", i % 2 == 0 ? "15" : "1234", H2_SAID);
        add("x-request-id", id, H2_SECRET);
        for (size_t at = 0; at < talk.count; at++) {
            const struct h2_field *same = &talk.field[at];
            field[at] = (nghttp2_nv){.name = (uint8_t *)(uintptr_t)same->name.at,
                                     .namelen = same->name.length,
                                     .value = (uint8_t *)(uintptr_t)same->value.at,
                                     .valuelen = same->value.length,
                                     .flags = same->remembering == H2_SECRET ? NGHTTP2_NV_FLAG_NO_INDEX : 0};
        }
        say();
        ours_bytes += talk.length;
        their_bytes += (size_t)nghttp2_hd_deflate_hd(theirs, bytes, sizeof bytes, field, talk.count);
    }
    check_between_u64(ours_bytes, 1, their_bytes);
    nghttp2_hd_deflate_del(theirs);
    talk_end();
}

BECALM_TESTS(cmocka_unit_test(test_h2_packer__knows_all_that_everybody_knows),
             cmocka_unit_test(test_h2_packer__has_a_code_for_each_byte),
             cmocka_unit_test(test_h2_packer__shortens_only_what_becomes_shorter),
             cmocka_unit_test(test_h2_packer__numbers_are_those_of_c_1),
             cmocka_unit_test(test_h2_packer__requests_are_those_of_c_4),
             cmocka_unit_test(test_h2_packer__answers_are_those_of_c_6),
             cmocka_unit_test(test_h2_packer__secrets_are_told_as_such_and_never_remembered),
             cmocka_unit_test(test_h2_packer__finds_names_beside_other_values),
             cmocka_unit_test(test_h2_packer__what_is_not_remembered_is_no_number_although_it_stands_in_the_table),
             cmocka_unit_test(test_h2_packer__ids_of_names_change_nothing),
             cmocka_unit_test(test_h2_packer__names_in_one_slot_are_not_mixed_up),
             cmocka_unit_test(test_h2_packer__fields_with_one_hash_are_not_mixed_up),
             cmocka_unit_test(test_h2_packer__names_with_one_hash_are_not_mixed_up),
             cmocka_unit_test(test_h2_packer__remembers_nothing_that_is_too_large),
             cmocka_unit_test(test_h2_packer__tells_the_peer_what_became_of_its_limits),
             cmocka_unit_test(test_h2_packer__forgets_what_the_peer_has_not_seen),
             cmocka_unit_test(test_h2_packer__peers_understand_any_heads),
             cmocka_unit_test(test_h2_packer__without_memory_fields_are_said_all_the_same),
             cmocka_unit_test(test_h2_packer__holds_little_more_than_its_limit),
             cmocka_unit_test(test_h2_packer__gives_its_memory_back_as_it_took_it),
             cmocka_unit_test(test_h2_packer__takes_no_more_bytes_than_nghttp2))
