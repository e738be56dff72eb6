/* SPDX-License-Identifier: MIT */
#include <becalm/base.h>

const char *becalm_error_sentence(int error)
{
    switch (error) {
    case 0:
        return "no error";
#define ERROR_CASE(name, number, sentence) \
    case name:                             \
        return sentence;
        BECALM_ERRORS(ERROR_CASE)
#undef ERROR_CASE
    }
    return "unknown error";
}
