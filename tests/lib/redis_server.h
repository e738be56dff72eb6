/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TESTS_REDIS_SERVER_H
#define BECALM_TESTS_REDIS_SERVER_H

/* A real redis-server of our own, on a Unix socket in a fresh folder. Include after check.h. */

#include <hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct redis_server {
    char folder[64];
    char socket[80];
    pid_t pid;
    redisContext *link; /* of the test itself */
};

/* False: there is no redis-server, or it does not start. */
static inline bool redis_server_start(struct redis_server *server)
{
    server->pid = fork();
    if (server->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nothing behind */
        execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", server->socket, "--save", "", "--dir",
               server->folder, "--logfile", "log", (char *)NULL);
        _exit(127);
    }
    for (int i = 0; i < 6000; i++) {
        server->link = redisConnectUnix(server->socket);
        if (server->link != NULL && server->link->err == 0) {
            return true;
        }
        redisFree(server->link);
        server->link = NULL;
        if (waitpid(server->pid, NULL, WNOHANG) == server->pid) {
            break;
        }
        usleep(10000);
    }
    return false;
}

static inline bool redis_server_open(struct redis_server *server)
{
    snprintf(server->folder, sizeof server->folder, "/tmp/becalm-redis-XXXXXX");
    check_true(mkdtemp(server->folder) != NULL);
    snprintf(server->socket, sizeof server->socket, "%s/s", server->folder);
    bool there = redis_server_start(server);
    if (!there) {
        print_message("redis-server is not there, or did not start\n");
        (void)rmdir(server->folder);
    }
    return there;
}

static inline void redis_server_kill(struct redis_server *server)
{
    redisFree(server->link);
    server->link = NULL;
    kill(server->pid, SIGKILL);
    (void)waitpid(server->pid, NULL, 0);
    (void)unlink(server->socket);
}

static inline void redis_server_close(struct redis_server *server)
{
    char log[80];
    redis_server_kill(server);
    snprintf(log, sizeof log, "%s/log", server->folder);
    (void)unlink(log);
    (void)rmdir(server->folder);
}

/* A command of the test itself, which must succeed. */
static inline void redis_server_tell(struct redis_server *server, const char *command)
{
    redisReply *reply = redisCommand(server->link, command);
    check_true(reply != NULL);
    if (reply->type == REDIS_REPLY_ERROR) {
        print_error("%s: %s\n", command, reply->str);
        fail();
    }
    freeReplyObject(reply);
}

#endif
