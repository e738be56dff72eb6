/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L

#include "cli.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* https://no-color.org: set and not empty means no colour. */
static bool wants_colour(FILE *out)
{
    const char *no = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    if (no != NULL && no[0] != '\0') {
        return false;
    }
    if (terminal == NULL || strcmp(terminal, "dumb") == 0) {
        return false;
    }
    return isatty(fileno(out)) == 1;
}

struct cli_style cli_style(FILE *out)
{
    if (!wants_colour(out)) {
        return (struct cli_style){.bold = "", .dim = "", .red = "", .yellow = "", .green = "", .reset = ""};
    }
    return (struct cli_style){
        .bold = "\033[1m",
        .dim = "\033[2m",
        .red = "\033[31m",
        .yellow = "\033[33m",
        .green = "\033[32m",
        .reset = "\033[0m",
    };
}

bool cli_utf8(void)
{
    /* Here and not at the start: a gateway prints no charts, and the tables of a locale are 150 KB. Only the type of
     * characters is set, so numbers keep their decimal point. */
    (void)setlocale(LC_CTYPE, "");
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}
