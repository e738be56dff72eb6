/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_CGROUP_H
#define BECALM_PROXY_CGROUP_H

/* The memory and CPU limits of this process's cgroups, of versions 1 and 2. */

#include <stdint.h>

/* The limit in one folder of a cgroup; UINT64_MAX: it has none. */
typedef uint64_t cgroup_fn(const char *folder, int version);

/* The lowest limit of the process's cgroup and its parents. In a container the path may be that of the machine outside,
 * of which only the mount point itself is visible. `root` is put before all paths, for tests; else "". UINT64_MAX:
 * there is no limit. */
uint64_t cgroup_least(const char *root, const char *controller, cgroup_fn *limit);

#endif
