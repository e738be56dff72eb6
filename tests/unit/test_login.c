/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "proxy/host/login.h"

static bool named(const char *value)
{
    return login_named((struct becalm_text){value, strlen(value)});
}

static void test_login__an_empty_value_names_no_scheme(void **state)
{
    (void)state;
    check_true(!named(""));
    check_true(!named(" , ,"));
}

static void test_login__schemes_that_log_a_connection_in_are_found_in_any_place(void **state)
{
    (void)state;
    const char *const values[] = {"NTLM",
                                  "ntlm",
                                  "Negotiate",
                                  "NEGOTIATE YII=",
                                  "NTLM TlRMTVNTUAAB=",
                                  "Negotiate, NTLM",
                                  "Basic realm=\"a\", NTLM",
                                  "Basic realm=\"a, b\\\" c\",Negotiate",
                                  "Digest realm=x, nonce=y , nTLM"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        check_true(named(values[i]));
    }
}

static void test_login__others_are_not_taken_for_them(void **state)
{
    (void)state;
    const char *const values[] = {"Basic TlRMTQ==",          "Bearer ntlm",   "NTLMv2 x",
                                  "Basic realm=\"x, NTLM\"", "Digest ntlm=1", "Basic realm=\"unclosed, NTLM"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        check_true(!named(values[i]));
    }
}

BECALM_TESTS(cmocka_unit_test(test_login__an_empty_value_names_no_scheme),
             cmocka_unit_test(test_login__schemes_that_log_a_connection_in_are_found_in_any_place),
             cmocka_unit_test(test_login__others_are_not_taken_for_them))
