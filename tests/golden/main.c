/* SPDX-License-Identifier: MIT */
/* becalm with one command: what a simulation needs, and neither libcurl nor libyaml. */
#include "cli/cli.h"

const struct cli_command *const cli_commands[] = {&cmd_sim, NULL};

int main(int argc, char **argv)
{
    return cli_main(argc, argv);
}
