/* SPDX-License-Identifier: MIT */
#include "proxy/websocket.h"

#include "check.h"

static bool between_after(const char *bytes, size_t length)
{
    struct websocket_frames whole = {0};
    struct websocket_frames single = {0};
    websocket_follow(&whole, bytes, length);
    for (size_t i = 0; i < length; i++) {
        websocket_follow(&single, bytes + i, 1);
    }
    assert_int_equal(websocket_between(&whole), websocket_between(&single));
    return websocket_between(&whole);
}

#define BETWEEN(bytes) between_after(bytes, sizeof(bytes) - 1)

static void test_websocket__nothing_is_between_two_frames(void **state)
{
    (void)state;
    assert_true(BETWEEN(""));
}

static void test_websocket__a_frame_ends_with_its_payload(void **state)
{
    (void)state;
    assert_false(BETWEEN("\x81"));
    assert_false(BETWEEN("\x81\x03"));
    assert_false(BETWEEN("\x81\x03"
                         "ab"));
    assert_true(BETWEEN("\x81\x03"
                        "abc"));
    assert_true(BETWEEN("\x81\x00"));
    assert_true(BETWEEN("\x81\x03"
                        "abc"
                        "\x01\x01"
                        "x")); /* a fragment is a frame, too */
    assert_false(BETWEEN("\x81\x03"
                         "abc"
                         "\x81"));
}

static void test_websocket__a_mask_belongs_to_its_frame(void **state)
{
    (void)state;
    assert_false(BETWEEN("\x81\x80"
                         "abc"));
    assert_true(BETWEEN("\x81\x80"
                        "abcd"));
    assert_true(BETWEEN("\x81\x82"
                        "abcd"
                        "xy"));
}

static void test_websocket__long_frames_have_longer_lengths(void **state)
{
    (void)state;
    char frame[4 + 300] = "\x82\x7e\x01\x2c";
    char longer[10 + 70000] = "\x82\x7f\x00\x00\x00\x00\x00\x01\x11\x70";
    assert_false(between_after(frame, 2));
    assert_false(between_after(frame, sizeof frame - 1));
    assert_true(between_after(frame, sizeof frame));
    assert_false(between_after(longer, 9));
    assert_false(between_after(longer, sizeof longer - 1));
    assert_true(between_after(longer, sizeof longer));
}

static void test_websocket__nothing_comes_behind_a_close_frame(void **state)
{
    (void)state;
    assert_false(BETWEEN("\x88\x00"));
    assert_false(BETWEEN("\x88\x02\x03\xe8"));
    assert_true(BETWEEN("\x89\x00")); /* a ping */
}

static void test_websocket__a_length_that_no_frame_has_makes_the_rest_unclear(void **state)
{
    (void)state;
    assert_false(BETWEEN("\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff"));
    assert_false(BETWEEN("\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff"
                         "abcd"));
}

static void test_websocket__a_close_frame_is_whole_and_masked_only_for_a_server(void **state)
{
    (void)state;
    char frame[WEBSOCKET_CLOSE_MAX];
    uint32_t mask;
    memcpy(&mask, "\x11\x22\x33\x44", 4);
    assert_int_equal(websocket_write_close(frame, WEBSOCKET_GOING_AWAY, NULL), 4);
    assert_memory_equal(frame, "\x88\x02\x03\xe9", 4);
    assert_int_equal(websocket_write_close(frame, WEBSOCKET_GOING_AWAY, &mask), 8);
    assert_memory_equal(frame, "\x88\x82\x11\x22\x33\x44\x12\xcb", 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_websocket__nothing_is_between_two_frames),
        cmocka_unit_test(test_websocket__a_frame_ends_with_its_payload),
        cmocka_unit_test(test_websocket__a_mask_belongs_to_its_frame),
        cmocka_unit_test(test_websocket__long_frames_have_longer_lengths),
        cmocka_unit_test(test_websocket__nothing_comes_behind_a_close_frame),
        cmocka_unit_test(test_websocket__a_length_that_no_frame_has_makes_the_rest_unclear),
        cmocka_unit_test(test_websocket__a_close_frame_is_whole_and_masked_only_for_a_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
