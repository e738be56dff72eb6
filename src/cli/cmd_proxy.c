/* SPDX-License-Identifier: MIT */
/* becalm proxy: runs the gateway, and reloads or drains it after a signal or a change of the file. */
#define _GNU_SOURCE
#include "cli.h"
#include "gateway/confine.h"
#include "gateway/gateway.h"
#include "gateway/notify.h"
#include "policy/file.h"
#include "policy/parts.h"

#include <errno.h>
#include <libgen.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define SETTLE_MS 100 /* after a change: editors and Kubernetes make several */

static void print_diags(const struct becalm_diags *diags)
{
    for (uint32_t i = 0; i < diags->count; i++) {
        char line[1024];
        becalm_diag_write(&diags->diag[i], line, sizeof line);
        fprintf(stderr, "%s\n", line);
    }
}

/* The directory, not the file: a link that is swapped, or an editor's new file, is another inode. Watching one twice is
 * watching it once. */
static void watch_directory(int fd, const char *path)
{
    char *copy = strdup(path);
    if (copy != NULL && fd >= 0) {
        inotify_add_watch(fd, dirname(copy), IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_DELETE | IN_ATTRIB);
    }
    free(copy);
}

static bool drained(int fd)
{
    char events[4096];
    return read(fd, events, sizeof events) <= 0;
}

static void take_changes(int fd)
{
    while (!drained(fd)) {
    }
}

/* The policy's file. It is watched from before it is loaded, so that no change falls in between. */
struct watched {
    const char *path;
    int fd; /* its directory's changes, and those of the directories of files that it names */
    char *text;
    size_t length;
    uint64_t named; /* a hash of the files that the policy names: certificates, and its parts */
};

static void watched_open(struct watched *file, const char *path)
{
    *file = (struct watched){.path = path, .fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK)};
    watch_directory(file->fd, path);
    const char *why; /* the loader says so */
    file->text = file_read_regular(path, &file->length, &why);
}

static void watched_close(struct watched *file)
{
    free(file->text);
    if (file->fd >= 0) {
        close(file->fd);
    }
}

/* FNV-1a, 64 bits: it only has to tell one renewal from the next. */
static void sum_bytes(uint64_t *sum, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        *sum = (*sum ^ (unsigned char)bytes[i]) * UINT64_C(1099511628211);
    }
}

static bool sum_path(const char *path, void *data)
{
    struct watched *file = data;
    size_t length = 0;
    const char *why;
    watch_directory(file->fd, path);
    char *text = file_read_regular(path, &length, &why);
    sum_bytes(&file->named, text == NULL ? "" : text, length);
    sum_bytes(&file->named, "", 1); /* where one ends, the next begins */
    free(text);
    return true;
}

static void sum_file(const struct becalm_file *named, void *data)
{
    if (named->path != NULL) {
        (void)sum_path(named->path, data);
    }
}

/* A file, or a folder, to which files may be added or removed. */
static void sum_part(struct watched *file, const char *part)
{
    char inside[4096];
    if ((size_t)snprintf(inside, sizeof inside, "%s/.", part) < sizeof inside) {
        watch_directory(file->fd, inside);
    }
    (void)parts_files(part, sum_path, file);
    sum_bytes(&file->named, part, strlen(part) + 1);
}

/* Looks at the files that the policy in force names, and watches where they are. True: they say something new. */
static bool named_changed(struct watched *file, struct gateway *gateway)
{
    uint64_t before = file->named;
    struct snapshot *snapshot = gateway_snapshot(gateway);
    file->named = UINT64_C(14695981039346656037);
    tls_set_files(snapshot->config, sum_file, file);
    for (const char *const *part = becalm_config_parts(snapshot->config); *part != NULL; part++) {
        sum_part(file, *part);
    }
    snapshot_drop(snapshot);
    return file->named != before;
}

/* A directory has other files too: only a policy that reads differently is worth a reload. */
static bool changed(struct watched *file)
{
    size_t length;
    const char *why;
    char *text = file_read_regular(file->path, &length, &why);
    bool differs =
        text != NULL && (file->text == NULL || length != file->length || memcmp(text, file->text, length) != 0);
    if (differs) {
        free(file->text);
        file->text = text;
        file->length = length;
    } else {
        free(text);
    }
    return differs;
}

/* A reload is over. The service manager got RELOADING only if it requested the reload by HUP. */
static void tell_reload(struct gateway *gateway, uint64_t *waited_for)
{
    char status[1100];
    char said[1200];
    uint64_t ordered = gateway_reload_told(gateway, status, sizeof status);
    bool answered = *waited_for > 0 && ordered >= *waited_for;
    snprintf(said, sizeof said, "%sSTATUS=%s", answered ? "READY=1\n" : "", status);
    notify(said);
    *waited_for = answered ? 0 : *waited_for;
}

/* Like poll(), but does not fail: the kernel refuses to poll more descriptors than the limit of open files allows, and
 * when it has no memory. Then each descriptor is polled by itself, ten times a second, so that signals have an effect.
 */
static int poll_all(struct pollfd *fds, nfds_t count, int timeout)
{
    int ready = poll(fds, count, timeout);
    if (ready >= 0 || errno == EINTR) {
        return ready;
    }
    ready = 0;
    for (nfds_t i = 0; i < count; i++) {
        fds[i].revents = 0;
        ready += poll(&fds[i], 1, 0) > 0;
    }
    if (ready == 0) {
        nanosleep(&(struct timespec){.tv_nsec = 100 * BECALM_MS}, NULL);
        return timeout >= 0 ? 0 : -1;
    }
    return ready;
}

/* Returns when the gateway has got the order to end. */
static void serve(struct gateway *gateway, struct watched *file, int signals)
{
    becalm_ns watchdog = notify_watchdog();
    uint64_t waited_for = 0; /* the reload that the service manager is waiting for; 0: none */
    bool settling = false;
    bool ending = false;
    bool told = false; /* USR2 without an effect was reported */
    for (;;) {
        struct pollfd fds[4] = {
            {.fd = signals, .events = POLLIN},
            {.fd = settling || ending ? -1 : file->fd, .events = POLLIN},
            {.fd = gateway_end_fd(gateway), .events = POLLIN},
            {.fd = gateway_reload_fd(gateway), .events = POLLIN},
        };
        int timeout = settling ? SETTLE_MS : watchdog == BECALM_NEVER ? -1 : (int)(watchdog / BECALM_MS) + 1;
        int count = poll_all(fds, 4, timeout);
        if (watchdog != BECALM_NEVER && gateway_moves(gateway)) {
            notify("WATCHDOG=1");
        }
        if ((fds[3].revents & POLLIN) != 0) {
            tell_reload(gateway, &waited_for);
            if (named_changed(file, gateway)) { /* other files, or they have changed */
                gateway_order_reload(gateway);
            }
        }
        if (settling && count == 0) {
            settling = false;
            take_changes(file->fd);
            bool renewed = named_changed(file, gateway);
            if (changed(file) || renewed) {
                gateway_order_reload(gateway);
            }
        }
        if ((fds[1].revents & POLLIN) != 0) {
            settling = true;
            take_changes(file->fd);
        }
        if ((fds[2].revents & POLLIN) != 0) {
            break;
        }
        struct signalfd_siginfo signal;
        if ((fds[0].revents & POLLIN) == 0 || read(signals, &signal, sizeof signal) != (ssize_t)sizeof signal) {
            continue;
        }
        if (signal.ssi_signo == SIGHUP) {
            notify_reloading();
            changed(file);
            named_changed(file, gateway);
            waited_for = gateway_order_reload(gateway);
        } else if (signal.ssi_signo == SIGUSR2) {
            if (!told) {
                fprintf(stderr, "becalm proxy: SIGUSR2 has no effect here: HUP reloads, TERM drains and ends\n");
            }
            told = true;
        } else if (signal.ssi_signo != SIGUSR1) { /* USR1 is for programs with log files */
            if (!ending && signal.ssi_signo == SIGINT && isatty(STDERR_FILENO)) {
                fprintf(stderr, "becalm proxy: draining; press Ctrl-C again to end at once\n");
            }
            notify("STOPPING=1");
            ending = true;
            gateway_order_drain(gateway);
        }
    }
}

static int block_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2); /* its default would end the gateway without a drain */
    signal(SIGPIPE, SIG_IGN);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0) {
        return -1;
    }
    return signalfd(-1, &set, SFD_CLOEXEC);
}

/* As many descriptors as the system allows: each connection is one. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void greet(const struct gateway *gateway, bool quiet)
{
    const struct becalm_settings *settings = gateway->snapshot->settings;
    if (quiet) {
        return;
    }
    fprintf(stderr, "becalm proxy: %u service%s from %s, %u worker%s\n", gateway->snapshot->service_count,
            gateway->snapshot->service_count == 1 ? "" : "s", gateway->path, gateway->worker_count,
            gateway->worker_count == 1 ? "" : "s");
    for (uint32_t i = 0; i < settings->listener_count; i++) {
        const struct becalm_listener *listener = &settings->listeners[i];
        const struct becalm_service *service = becalm_config_service(gateway->snapshot->config, listener->service);
        fprintf(stderr, "  listening on %s%s%s\n", listener->address, service == NULL ? "" : " for ",
                service == NULL ? "" : service->name);
    }
    if (settings->admin != NULL) {
        bool local = strncmp(settings->admin, "unix:", 5) == 0;
        const char *scheme = settings->admin_tls.tls ? "https" : "http";
        if (local) {
            fprintf(stderr, "  admin on %s\n", settings->admin);
        } else {
            fprintf(stderr, "  admin on %s://%s/\n", scheme, settings->admin);
        }
    }
}

/* The policy is valid, but the gateway could not start: reports the system's error. */
static int tell_cause(const struct cli_command *command, int rc, int cause)
{
    if (cause == EMFILE || cause == ENFILE) {
        return cli_fail(command, "can't start: %s; raise the limit of open files (ulimit -n, LimitNOFILE=)",
                        strerror(cause));
    }
    return rc == BECALM_ENOMEM ? cli_fail(command, "out of memory")
                               : cli_fail(command, "can't start: %s", strerror(cause));
}

static int run(const struct cli_command *command, const struct cli_args *args)
{
    struct becalm_load_options load = {
        .allow_unknown = cli_has(command, args, "allow-unknown"),
        .set = cli_values(command, args, "set"),
    };
    if (args->word_count == 0) {
        return access("becalm.yaml", R_OK) == 0
                   ? cli_usage(command, "no policy is given: `becalm proxy becalm.yaml` runs the one in this folder")
                   : cli_usage(command, "no policy is given: `becalm init` writes a first one");
    }
    load.parts = args->words + 1;
    confine(cli_has(command, args, "dumpable"));
    struct becalm_diags *diags = calloc(1, sizeof *diags);
    if (diags == NULL) {
        return cli_fail(command, "out of memory");
    }
    int first;
    int handed[256];
    uint32_t handed_count = notify_descriptors(&first);
    for (uint32_t i = 0; i < handed_count; i++) {
        handed[i] = first + (int)i;
    }
    struct gateway_options options = {
        .path = args->words[0],
        .load = &load,
        .handed = {handed, handed_count},
        .log_fd = STDERR_FILENO,
        .access_fd = STDOUT_FILENO,
    };
    struct gateway *gateway = NULL;
    int signals = block_signals();
    raise_descriptor_limit();
    struct watched file;
    watched_open(&file, args->words[0]);
    int rc = gateway_make(&gateway, &options, diags);
    int cause = errno;
    bool told = diags->errors > 0;
    print_diags(diags);
    free(diags);
    if (rc != 0) {
        watched_close(&file);
        return told ? 1 : tell_cause(command, rc, cause);
    }
#ifdef __GLIBC__
    (void)malloc_trim(0); /* what reading the policy took goes back to the system */
#endif
    greet(gateway, cli_has(command, args, "quiet"));
    if (signals < 0 || gateway_start(gateway) != 0) {
        rc = cli_fail(command, "can't start: %s", strerror(errno));
    } else {
        named_changed(&file, gateway);
        notify("READY=1");
        serve(gateway, &file, signals);
        gateway_wait(gateway);
    }
    gateway_free(gateway);
    watched_close(&file);
    close(signals);
    return rc;
}

static const struct cli_option options[] = {
    {.name = "set", .argument = "KEY=VALUE", .help = "override a key of the policy: role=sidecar", .many = true},
    {.name = "allow-unknown", .help = "unknown keys are warnings, for rolling upgrades"},
    {.name = "quiet", .letter = 'q', .help = "do not print the listening addresses"},
    {.name = "dumpable", .help = "let core dumps, debuggers and profilers read the gateway's memory"},
    {.name = NULL},
};

const struct cli_command cmd_proxy = {
    .name = "proxy",
    .summary = "run the gateway",
    .usage = "proxy [options] POLICY [PART...]",
    .purpose = "Runs the gateway or sidecar that the policy describes: listens, routes,\n"
               "balances, and applies budgets, breakers, limits and deadlines to every call.\n"
               "Each PART is a file, or a folder of files, with more services. HUP or a changed\n"
               "file reloads the policy; if the new policy is wrong, the old one stays.\n"
               "TERM or INT drains: requests in flight are finished. A second signal ends the\n"
               "gateway at once.",
    .options = options,
    .examples = "  becalm proxy becalm.yaml\n"
                "  becalm proxy base.yaml conf.d/\n"
                "  becalm proxy --set role=sidecar --set listen=127.0.0.1:8081 becalm.yaml\n",
    .complete = CLI_FILE,
    .run = run,
};
