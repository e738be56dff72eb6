/* SPDX-License-Identifier: MIT */
#include "admin.h"
int admin_make(struct admin **admin, struct gateway *gateway, struct loop *loop, struct log_source *log,
               struct becalm_diags *diags)
{
    (void)admin;
    (void)gateway;
    (void)loop;
    (void)log;
    (void)diags;
    return 0;
}
void admin_free(struct admin *admin)
{
    (void)admin;
}
