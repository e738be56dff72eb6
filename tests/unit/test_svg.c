/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L

#include <stdio.h>

#include "check.h"

#include "report/svg.h"

struct sheet {
    FILE *out;
    char *text;
    size_t length;
};

static void sheet_open(struct sheet *sheet)
{
    *sheet = (struct sheet){0};
    sheet->out = open_memstream(&sheet->text, &sheet->length);
    assert_non_null(sheet->out);
}

static void sheet_expect(struct sheet *sheet, const char *expected)
{
    fclose(sheet->out);
    check_eq_str(sheet->text, expected);
    free(sheet->text);
}

static void test_svg__text_can_not_leave_its_element(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *written;
    } cases[] = {
        {"", ""},
        {"a<b>&\"c\"", "a&lt;b&gt;&amp;&quot;c&quot;"},
        {"tab\tline\n", "tab\tline\n"},
        {"red \x1b[31m \x7f", "red ?[31m ?"},
        {"c1 \xc2\x9b.", "c1 ?."},
        {"\xc3\xa9 \xe2\x9c\x93", "\xc3\xa9 \xe2\x9c\x93"},
        {"cut \xe2\x9c", "cut ??"},
        {"none \xef\xbf\xbf\xef\xbf\xbe.", "none ??."},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sheet sheet;
        sheet_open(&sheet);
        svg_escape(sheet.out, cases[i].text);
        sheet_expect(&sheet, cases[i].written);
    }
}

static void test_svg__lengths_have_one_decimal(void **state)
{
    (void)state;
    struct sheet sheet;
    sheet_open(&sheet);
    svg_rect(sheet.out, "bar", &(struct svg_box){0, 5, 10, 12345});
    svg_line(sheet.out, "axis", 1, 2, 30, 40);
    svg_text(sheet.out, "tick", 100, 205, SVG_END, "1 & 2");
    sheet_expect(&sheet, "<rect class=\"bar\" x=\"0.0\" y=\"0.5\" width=\"1.0\" height=\"1234.5\"/>\n"
                         "<line class=\"axis\" x1=\"0.1\" y1=\"0.2\" x2=\"3.0\" y2=\"4.0\"/>\n"
                         "<text class=\"tick\" text-anchor=\"end\" x=\"10.0\" y=\"20.5\">1 &amp; 2</text>\n");
}

static void test_svg__steps_are_written_where_the_height_changes(void **state)
{
    (void)state;
    const struct svg_box box = {100, 50, 400, 200};
    const uint32_t height[] = {200, 200, 0, 50};
    struct sheet sheet;
    sheet_open(&sheet);
    svg_steps(sheet.out, "real", &box, height, 4, false);
    svg_steps(sheet.out, "area", &box, height, 4, true);
    sheet_expect(&sheet, "<path class=\"real\" d=\"M10.0 5.0H30.0V25.0H40.0V20.0H50.0\"/>\n"
                         "<path class=\"area\" d=\"M10.0 25.0H10.0V5.0H30.0V25.0H40.0V20.0H50.0V25.0Z\"/>\n");
}

static void test_svg__a_picture_has_a_name_and_a_description(void **state)
{
    (void)state;
    struct sheet sheet;
    sheet_open(&sheet);
    svg_open(sheet.out, &(struct svg_frame){3600, 1605, "c1", "a < b", "said", false});
    svg_close(sheet.out);
    sheet_expect(&sheet, "<svg viewBox=\"0 0 360.0 160.5\" role=\"img\" aria-labelledby=\"c1-title c1-desc\">\n"
                         "<title id=\"c1-title\">a &lt; b</title>\n<desc id=\"c1-desc\">said</desc>\n</svg>\n");
}

BECALM_TESTS(cmocka_unit_test(test_svg__text_can_not_leave_its_element),
             cmocka_unit_test(test_svg__lengths_have_one_decimal),
             cmocka_unit_test(test_svg__steps_are_written_where_the_height_changes),
             cmocka_unit_test(test_svg__a_picture_has_a_name_and_a_description), )
