/* SPDX-License-Identifier: MIT */
#include <becalm/version.h>

const char *becalm_version(void)
{
    return BECALM_VERSION;
}
