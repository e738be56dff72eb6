/* SPDX-License-Identifier: MIT */
#include "tls_count.h"

const char *tls_side_word(enum tls_side side)
{
    switch (side) {
    case TLS_CLIENTS:
        return "clients";
    case TLS_HOSTS:
        return "hosts";
    }
    BECALM_UNREACHABLE();
}

const char *tls_result_word(enum tls_result result)
{
    switch (result) {
    case TLS_FULL:
        return "full";
    case TLS_RESUMED:
        return "resumed";
    case TLS_NO_CERTIFICATE:
        return "no_certificate";
    case TLS_BAD_CERTIFICATE:
        return "bad_certificate";
    case TLS_UNKNOWN_NAME:
        return "unknown_name";
    case TLS_NO_COMMON:
        return "no_common";
    case TLS_ALERT:
        return "alert";
    case TLS_PLAIN:
        return "plain";
    case TLS_TIMEOUT:
        return "timeout";
    case TLS_CLOSED:
        return "closed";
    case TLS_BROKEN:
        return "broken";
    }
    BECALM_UNREACHABLE();
}
