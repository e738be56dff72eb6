/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_CGROUP_H
#define BECALM_PROXY_CGROUP_H

/* The memory and CPU limits of this process's cgroups, of versions 1 and 2. */

#include <stdint.h>

/* The limit in one folder of a cgroup; UINT64_MAX: it has none. */
typedef uint64_t cgroup_fn(const char *folder, int version);

/* The least of the process's cgroup and all that it is inside of. In a container the path may be the host's, of which
 * only the end of the way, the mount itself, is there. `root` is put before all paths, for tests; "" otherwise.
 * UINT64_MAX: nothing limits it. */
uint64_t cgroup_least(const char *root, const char *controller, cgroup_fn *limit);

#endif
