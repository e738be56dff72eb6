/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "loop/loop.h"

#include <stdlib.h>
#include <unistd.h>

/* A task that always has more to do, and events that must happen nevertheless. */
struct busy {
    struct task task; /* first */
    struct loop *loop;
    unsigned runs;
    unsigned runs_max; /* then it gives up: the test has failed */
    struct task *drops;
    int tells; /* at its hundredth run; 0: none */
};

struct fixture {
    struct loop loop; /* first */
    struct busy busy[3];
    struct timer timer;
    unsigned fired;
    unsigned order[8];
    unsigned order_count;
};

static void woken(struct loop *loop)
{
    (void)loop;
}

static void run_again(struct task *task)
{
    struct busy *busy = (struct busy *)task;
    if (busy->runs == 100 && busy->tells != 0) {
        check_true(write(busy->tells, "x", 1) == 1);
    }
    if (++busy->runs == busy->runs_max) {
        busy->loop->stop = true;
    } else {
        loop_later(busy->loop, task);
    }
}

static void stop(struct timer *timer)
{
    struct fixture *f = (struct fixture *)((char *)timer - offsetof(struct fixture, timer));
    f->fired++;
    f->loop.stop = true;
}

static void start(struct fixture *f)
{
    *f = (struct fixture){.timer = {.fire = stop}};
    check_true(loop_init(&f->loop, woken) == 0);
    for (unsigned i = 0; i < 3; i++) {
        f->busy[i] = (struct busy){.task = {.run = run_again}, .loop = &f->loop, .runs_max = 2000000};
    }
}

static void test_loop__timers_fire_while_a_task_always_has_more_to_do(void **state)
{
    (void)state;
    static struct fixture f;
    start(&f);
    loop_later(&f.loop, &f.busy[0].task);
    wheel_arm(&f.loop.wheel, &f.timer, becalm_ns_after(f.loop.now, 5 * BECALM_MS));
    loop_run(&f.loop);
    check_eq_u64(f.fired, 1);
    check_true(f.busy[0].runs > 0);
    loop_close(&f.loop);
}

static void read_and_stop(struct source *source, uint32_t events)
{
    struct fixture **f = (struct fixture **)(source + 1);
    (void)events;
    (*f)->loop.stop = true;
    (*f)->fired++;
}

static void test_loop__sockets_are_read_while_a_task_always_has_more_to_do(void **state)
{
    (void)state;
    static struct fixture f;
    struct {
        struct source source;
        struct fixture *f;
    } reader = {.f = &f};
    int ends[2];
    start(&f);
    check_true(pipe(ends) == 0);
    reader.source = (struct source){.ready = read_and_stop, .fd = ends[0]};
    check_true(loop_watch(&f.loop, &reader.source) == 0);
    loop_later(&f.loop, &f.busy[0].task);
    loop_later(&f.loop, &f.busy[1].task);
    f.busy[0].tells = ends[1];
    loop_run(&f.loop);
    check_eq_u64(f.fired, 1);
    check_eq_u64(f.busy[0].runs, f.busy[1].runs); /* in turn */
    close(ends[0]);
    close(ends[1]);
    loop_close(&f.loop);
}

static void note_order(struct task *task)
{
    struct busy *busy = (struct busy *)task;
    struct fixture *f = (struct fixture *)busy->loop;
    f->order[f->order_count++] = (unsigned)(busy - f->busy);
    if (busy->drops != NULL) {
        loop_not_later(&f->loop, busy->drops);
    }
}

static void test_loop__tasks_run_in_order_and_one_that_is_taken_back_does_not(void **state)
{
    (void)state;
    static struct fixture f;
    start(&f);
    for (unsigned i = 0; i < 3; i++) {
        f.busy[i].task.run = note_order;
        loop_later(&f.loop, &f.busy[i].task);
        loop_later(&f.loop, &f.busy[i].task); /* once is enough */
    }
    f.busy[0].drops = &f.busy[1].task;
    f.busy[2].drops = &f.busy[2].task; /* does not wait any more: nothing happens */
    wheel_arm(&f.loop.wheel, &f.timer, becalm_ns_after(f.loop.now, BECALM_MS));
    loop_run(&f.loop);
    check_eq_u64(f.order_count, 2);
    check_eq_u64(f.order[0], 0);
    check_eq_u64(f.order[1], 2);
    loop_later(&f.loop, &f.busy[1].task); /* the list is whole again */
    loop_later(&f.loop, &f.busy[0].task);
    loop_not_later(&f.loop, &f.busy[0].task);
    loop_later(&f.loop, &f.busy[2].task);
    f.loop.stop = false;
    wheel_arm(&f.loop.wheel, &f.timer, becalm_ns_after(f.loop.now, BECALM_MS));
    loop_run(&f.loop);
    check_eq_u64(f.order_count, 4);
    check_eq_u64(f.order[2], 1);
    check_eq_u64(f.order[3], 2);
    loop_close(&f.loop);
}

static void never(struct source *source, uint32_t events)
{
    (void)source;
    (void)events;
    fail_msg("a buried source was called");
}

static void test_loop__a_source_that_is_buried_is_not_called_though_its_socket_lives_on(void **state)
{
    (void)state;
    static struct fixture f;
    struct source *source = malloc(sizeof *source);
    int ends[2];
    start(&f);
    check_true(pipe(ends) == 0);
    *source = (struct source){.ready = never, .fd = dup(ends[0])};
    check_true(loop_watch_level(&f.loop, source, true) == 0);
    loop_bury(&f.loop, source);
    check_true(write(ends[1], "x", 1) == 1);
    wheel_arm(&f.loop.wheel, &f.timer, becalm_ns_after(f.loop.now, 5 * BECALM_MS));
    loop_run(&f.loop);
    check_eq_u64(f.fired, 1);
    close(ends[0]);
    close(ends[1]);
    loop_close(&f.loop);
}

static void test_loop__memory_of_its_blocks_stays_for_the_turn_and_is_then_for_the_next(void **state)
{
    (void)state;
    static struct fixture f;
    struct memory {
        uint64_t word[6];
        struct loop_given given;
    };
    start(&f);
    struct memory *memory = blocks_take(&f.loop.blocks, sizeof *memory);
    struct memory *other = blocks_take(&f.loop.blocks, sizeof *other);
    memory->word[0] = memory->word[5] = 7;
    loop_give_later(&f.loop, &memory->given, memory, sizeof *memory);
    loop_give_later(&f.loop, &other->given, other, sizeof *other);
    check_true(memory->word[0] == 7 && memory->word[5] == 7);
    loop_turn(&f.loop, false);
    struct memory *again = blocks_take(&f.loop.blocks, sizeof *again);
    check_true(!BLOCKS_KEEPS || again == memory || again == other);
    blocks_give(&f.loop.blocks, again, sizeof *again);
    loop_close(&f.loop); /* all memory is freed: the leak detector checks that */
}

BECALM_TESTS(cmocka_unit_test(test_loop__memory_of_its_blocks_stays_for_the_turn_and_is_then_for_the_next),
             cmocka_unit_test(test_loop__timers_fire_while_a_task_always_has_more_to_do),
             cmocka_unit_test(test_loop__sockets_are_read_while_a_task_always_has_more_to_do),
             cmocka_unit_test(test_loop__tasks_run_in_order_and_one_that_is_taken_back_does_not),
             cmocka_unit_test(test_loop__a_source_that_is_buried_is_not_called_though_its_socket_lives_on))
