/* SPDX-License-Identifier: MIT */
#include "message/packed.h"

#include "lib/check.h"

#include <stdlib.h>
#include <string.h>

/* Fields that were kept elsewhere are validated before they are used. */

static struct becalm_text text(const char *of)
{
    return (struct becalm_text){of, strlen(of)};
}

static size_t pack(char *room, size_t size, const char *const *words, size_t count)
{
    struct text_sink out = {.at = room, .size = size};
    packed_put(&out, (struct packed_field){.value = text("Created")});
    for (size_t i = 0; i + 1 < count; i += 2) {
        packed_put(&out, (struct packed_field){text(words[i]), text(words[i + 1]), false});
    }
    check_true(!out.full);
    return out.length;
}

static void test_packed__what_was_packed_is_right_and_no_part_of_it_is(void **state)
{
    static const char *const words[] = {"content-type", "text/plain", "Set-Cookie", "a=b", "x-empty", ""};
    char room[256];
    size_t length = pack(room, sizeof room, words, 6);
    size_t boundaries = 0;
    (void)state;
    check_true(packed_is_right((struct becalm_text){room, length}));
    check_true(!packed_is_right((struct becalm_text){room, 0}));
    for (size_t cut = 1; cut < length; cut++) {
        char *copy = malloc(cut); /* so that a look beyond its end is seen */
        check_true(copy != NULL);
        memcpy(copy, room, cut);
        boundaries += packed_is_right((struct becalm_text){copy, cut});
        free(copy);
    }
    check_eq_u64(boundaries, 3); /* behind the phrase and the first two fields */
}

static void test_packed__what_could_be_another_head_is_not_right(void **state)
{
    static const char *const wrong[][2] = {{"a b", "x"}, {"a:", "x"}, {"a", "x\r\ny: z"}, {"a", "\x7f"}, {"", "x"}};
    char room[256];
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        check_true(!packed_is_right((struct becalm_text){room, pack(room, sizeof room, wrong[i], 2)}));
    }
    memset(room, 0xff, sizeof room);
    check_true(!packed_is_right((struct becalm_text){room, sizeof room}));
}

static void test_packed__fields_of_a_name_are_taken_out(void **state)
{
    static const char *const words[] = {"set-cookie", "a",           "x", "1",          "Set-Cookie",
                                        "b",          "set-cookies", "2", "SET-COOKIE", "c"};
    static const char *const left[] = {"x", "1", "set-cookies", "2"};
    char room[256];
    char wanted[256];
    size_t length = pack(room, sizeof room, words, 10);
    (void)state;
    length = packed_without(room, length, "set-cookie");
    check_eq_u64(length, pack(wanted, sizeof wanted, left, 4));
    check_true(memcmp(room, wanted, length) == 0);
    check_eq_u64(packed_without(room, 0, "x"), 0);
}

static void test_packed__trailers_stand_behind_the_fields_and_can_be_taken_out(void **state)
{
    static const char *const words[] = {"x", "1"};
    static const char *const status[] = {"grpc-status", "0"};
    char room[256];
    char alone[256];
    size_t length = pack(room, sizeof room, words, 2);
    struct text_sink out = {.at = room, .size = sizeof room, .length = length};
    struct packed_field field;
    (void)state;
    struct becalm_text packed = {room, length};
    check_eq_u64(packed_split(&packed).length, 0);
    check_eq_u64(packed.length, length);
    packed_put(&out, (struct packed_field){0});
    packed_put(&out, (struct packed_field){text(status[0]), text(status[1]), false});
    packed = (struct becalm_text){room, out.length};
    check_true(packed_is_right(packed));
    struct becalm_text trailers = packed_split(&packed);
    check_eq_u64(packed.length, length);
    check_true(memcmp(room, alone, pack(alone, sizeof alone, words, 2)) == 0);
    check_true(packed_next(&trailers, &field) && field.name.length == 11 && field.value.length == 1 &&
               field.value.at[0] == '0');
    check_true(!packed_next(&trailers, &field));
    packed_put(&out, (struct packed_field){0}); /* there are trailers once */
    check_true(!packed_is_right((struct becalm_text){room, out.length}));
    packed = (struct becalm_text){room, pack(room, sizeof room, NULL, 0)}; /* a phrase alone */
    check_eq_u64(packed_split(&packed).length, 0);
    check_eq_u64(packed.length, pack(alone, sizeof alone, NULL, 0));
}

static void test_packed__a_field_stays_secret(void **state)
{
    char room[256];
    struct text_sink out = {.at = room, .size = sizeof room};
    struct packed_field field;
    (void)state;
    packed_put(&out, (struct packed_field){.value = text("Created")});
    packed_put(&out, (struct packed_field){text("x-key"), text("1"), true});
    packed_put(&out, (struct packed_field){text("x"), text("2"), false});
    packed_put(&out, (struct packed_field){text("y"), text(""), true});
    struct becalm_text rest = {room, out.length};
    check_true(packed_is_right(rest));
    check_true(packed_next(&rest, &field) && !field.secret && field.value.length == 7);
    check_true(packed_next(&rest, &field) && field.secret && field.name.length == 5 && field.value.length == 1);
    check_true(packed_next(&rest, &field) && !field.secret && field.name.length == 1 && field.value.length == 1);
    check_true(packed_next(&rest, &field) && field.secret && field.name.length == 1 && field.value.length == 0);
    check_true(!packed_next(&rest, &field));
    rest = (struct becalm_text){room, packed_without(room, out.length, "x")};
    check_true(packed_next(&rest, &field) && packed_next(&rest, &field) && field.secret);
    out.length = 0; /* the phrase and the separator of fields and trailers are no fields */
    packed_put(&out, (struct packed_field){.value = text("Created"), .secret = true});
    check_true(!packed_is_right((struct becalm_text){room, out.length}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packed__what_was_packed_is_right_and_no_part_of_it_is),
        cmocka_unit_test(test_packed__what_could_be_another_head_is_not_right),
        cmocka_unit_test(test_packed__fields_of_a_name_are_taken_out),
        cmocka_unit_test(test_packed__trailers_stand_behind_the_fields_and_can_be_taken_out),
        cmocka_unit_test(test_packed__a_field_stays_secret),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
