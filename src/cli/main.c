/* SPDX-License-Identifier: MIT */
#include "cli.h"

const struct cli_command *const cli_commands[] = {
    &cmd_init, &cmd_proxy, &cmd_top,    &cmd_doctor, &cmd_fault, &cmd_demo,       &cmd_exec, &cmd_sim, &cmd_check,
    &cmd_diff, &cmd_plan,  &cmd_import, &cmd_schema, &cmd_rules, &cmd_completion, &cmd_help, NULL,
};

int main(int argc, char **argv)
{
    return cli_main(argc, argv);
}
