/* SPDX-License-Identifier: MIT */
/* becalm with only the simulator, without libcurl and libyaml. */
#include "cli/cli.h"

const struct cli_command *const cli_commands[] = {&cmd_sim, NULL};

int main(int argc, char **argv)
{
    return cli_main(argc, argv);
}
