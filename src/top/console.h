/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TOP_CONSOLE_H
#define BECALM_TOP_CONSOLE_H

/* The terminal while it shows a screen: keys come one by one, on a second screen that goes away at the end. However the
 * program ends, SIGKILL apart, the terminal is as it was before. */

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <termios.h>

struct console {
    int keys;    /* to be read from */
    int signals; /* signals that ask for something: a signalfd */
    struct termios before;
    sigset_t mask_before;
};

/* Standard input and output must be a terminal. False: they are none; nothing was changed. */
bool console_open(struct console *);
void console_close(struct console *);

void console_size(uint32_t *width, uint32_t *height); /* of standard output; 80 and 24 if it does not say */

/* The next signal that came; 0: none. INT, TERM, HUP and QUIT ask for the end, TSTP for console_stop(), WINCH for
 * another drawing. */
int console_signal(struct console *);

/* As ^Z wants it: gives the terminal back, stops, and takes it again. */
void console_stop(struct console *);

/* Ends this program by the signal, so that its parent sees which. After console_close(). */
void console_raise(int number);

/* Writes all of the text; false: the reader has gone. */
bool console_write(const char *text, size_t length);

#endif
