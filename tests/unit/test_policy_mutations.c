/* SPDX-License-Identifier: MIT */
/* Ten thousand damaged policy files: none may crash the loader or hold it up, and each that is
 * refused says where it is wrong. */
#define _XOPEN_SOURCE 700 /* glob, clock_gettime */
#include <becalm/config.h>
#include <becalm/rand.h>

#include "check.h"

#include <glob.h>
#include <stdio.h>
#include <time.h>

#if defined(BECALM_FEW_RUNS)
#define FILES 2500u
#else
#define FILES 10000u
#endif
#define SEED      UINT64_C(20260611)
#define BYTES_MAX 16384u
#define SEEDS_MAX 256u

struct seed {
    char *text;
    size_t length;
};

static struct seed seeds[SEEDS_MAX];
static size_t seed_count;
static size_t whole_count; /* the first of them are whole: half of the mutants are theirs */
static struct becalm_diags diags;

static void seed_read(const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *text = malloc(BYTES_MAX);
    assert_non_null(text);
    assert_true(seed_count < SEEDS_MAX);
    seeds[seed_count++] = (struct seed){text, fread(text, 1, BYTES_MAX, file)};
    (void)fclose(file);
}

static int seeds_read(void **state)
{
    static const char *const patterns[] = {BECALM_POLICIES "/*.yaml",
                                           BECALM_POLICIES "/../tests/policies/broken/*.yaml"};
    (void)state;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        glob_t found;
        if (glob(patterns[i], 0, NULL, &found) != 0) {
            return -1;
        }
        for (size_t k = 0; k < found.gl_pathc; k++) {
            seed_read(found.gl_pathv[k]);
        }
        globfree(&found);
        whole_count = i == 0 ? seed_count : whole_count;
    }
    return 0;
}

static int seeds_free(void **state)
{
    (void)state;
    while (seed_count > 0) {
        free(seeds[--seed_count].text);
    }
    return 0;
}

struct mutant {
    char text[2 * BYTES_MAX];
    size_t length;
    uint64_t random;
};

static size_t draw(struct mutant *m, size_t below)
{
    return below == 0 ? 0 : (size_t)(becalm_rand_next(&m->random) % below);
}

/* Replaces `cut` bytes at `at` by others, as far as there is room. */
static void splice(struct mutant *m, size_t at, size_t cut, const char *text, size_t length)
{
    cut = cut < m->length - at ? cut : m->length - at;
    if (m->length - cut + length > sizeof m->text) {
        return;
    }
    memmove(m->text + at + length, m->text + at + cut, m->length - at - cut);
    memcpy(m->text + at, text, length);
    m->length = m->length - cut + length;
}

static size_t line_begin(const struct mutant *m, size_t at)
{
    while (at > 0 && m->text[at - 1] != '\n') {
        at--;
    }
    return at;
}

/* The line at a random place, in `line`; returns where it begins. */
static size_t line_take(struct mutant *m, char *line, size_t *length)
{
    size_t begin = line_begin(m, draw(m, m->length));
    size_t end = begin;
    while (end < m->length && end - begin < 511 && m->text[end] != '\n') {
        end++;
    }
    end += end < m->length;
    memcpy(line, m->text + begin, end - begin);
    *length = end - begin;
    return begin;
}

static void mutate(struct mutant *m)
{
    static const char *const words[] = {
        ":",    "{",        "}",    "[",       "]",       ",",       "&a ",
        "*a",   "!!int ",   "|\n",  ">\n",     "'",       "\"",      "%",
        "@",    "#",        "- ",   "? ",      "\t",      "\n",      "\r\n",
        " ",    "  ",       "~",    "<<",      "---\n",   "...\n",   "\xff",
        "\x1b", "\xc3\xa9", "0x",   "-1",      "1e9",     "null",    "99999999999999999999",
        "0.1",  "ms",       "%",    "none",    "off",     "auto",    "p95",
        "100s", "2.5",      "true", "[[[[[[[", "{{{{{{{", "&a [*a]", "\xef\xbb\xbf"};
    char line[512];
    size_t length = 0;
    size_t at = draw(m, m->length + 1);
    switch (draw(m, 8)) {
    case 0: /* another byte */
        line[0] = (char)draw(m, 256);
        splice(m, at, 1, line, 1);
        return;
    case 1: /* some bytes fewer */
        splice(m, at, 1 + draw(m, 20), "", 0);
        return;
    case 2:
    case 3: { /* a word put in, perhaps in the place of another */
        const char *word = words[draw(m, sizeof words / sizeof *words)];
        splice(m, at, draw(m, 8), word, strlen(word));
        return;
    }
    case 4: /* a line twice */
        at = line_take(m, line, &length);
        splice(m, at, 0, line, length);
        return;
    case 5: /* a line gone elsewhere */
        at = line_take(m, line, &length);
        splice(m, at, length, "", 0);
        splice(m, line_begin(m, draw(m, m->length + 1)), 0, line, length);
        return;
    case 6: { /* a line of another file */
        const struct seed *seed = &seeds[draw(m, seed_count)];
        size_t from = draw(m, seed->length);
        splice(m, line_begin(m, at), 0, seed->text + from, seed->length - from < 80 ? seed->length - from : 80);
        return;
    }
    case 7: /* indented otherwise, or cut off */
        if (draw(m, 4) == 0) {
            m->length = at;
        } else {
            length = draw(m, 3);
            splice(m, line_begin(m, at), length, "   ", draw(m, 4));
        }
        return;
    }
}

/* One file: it loads, or it has at least one error, and each has a place in the file. */
static bool is_fine(const struct mutant *m)
{
    struct becalm_config *config = NULL;
    size_t lines = 1;
    for (size_t i = 0; i < m->length; i++) {
        lines += m->text[i] == '\n' || m->text[i] == '\r';
    }
    memset(&diags, 0, offsetof(struct becalm_diags, diag));
    static const struct becalm_load_options all = {.shared_budgets = true};
    int rc = becalm_config_parse(&config, "mutant.yaml", m->text, m->length, &all, &diags);
    bool fine =
        rc == 0 ? config != NULL && diags.errors == 0 : config == NULL && rc == BECALM_EPARSE && diags.errors > 0;
    for (uint32_t i = 0; i < diags.count; i++) {
        const struct becalm_diag *d = &diags.diag[i];
        fine = fine && d->line >= 1 && d->line <= lines && d->column >= 1 && d->code[0] != '\0' &&
               d->message[0] != '\0' && strcmp(d->file, "mutant.yaml") == 0;
    }
    becalm_config_free(config);
    return fine;
}

/* CPU time, so that a busy machine fails no test. */
static uint64_t cpu_ms(void)
{
    struct timespec now;
    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now), 0);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void test_policy__mutants_load_or_say_where_they_are_wrong(void **state)
{
    (void)state;
    static struct mutant m;
    uint32_t loaded = 0;
    for (uint32_t i = 0; i < FILES; i++) {
        const struct seed *seed = &seeds[i / 2 % (i % 2 == 0 ? whole_count : seed_count)];
        m.random = SEED + i;
        m.length = seed->length;
        memcpy(m.text, seed->text, seed->length);
        for (size_t count = 1 + draw(&m, 4); count > 0; count--) {
            mutate(&m);
        }
        uint64_t before = cpu_ms();
        bool fine = is_fine(&m);
        uint64_t took = cpu_ms() - before;
        if (!fine || took > 1000) {
            char text[1024] = "";
            if (diags.count > 0) {
                (void)becalm_diag_write(&diags.diag[0], text, sizeof text);
            }
            (void)fwrite(m.text, 1, m.length, stderr);
            fail_msg("mutant %u of seed %" PRIu64 " (above), %" PRIu64 " ms, %u errors, first: %s", i, SEED, took,
                     (unsigned)diags.errors, text);
        }
        loaded += diags.errors == 0;
    }
    check_between_u64(loaded, FILES / 100, FILES / 2); /* some changes are harmless, and most are not */
}

static void test_policy__the_files_that_are_mutated_are_there(void **state)
{
    (void)state;
    check_between_u64(seed_count, 40, SEEDS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_policy__the_files_that_are_mutated_are_there),
        cmocka_unit_test(test_policy__mutants_load_or_say_where_they_are_wrong),
    };
    return cmocka_run_group_tests(tests, seeds_read, seeds_free) != 0;
}
