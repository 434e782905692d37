/* A trace as text. */
#ifndef FOREBAY_REPLAY_PRINT_H
#define FOREBAY_REPLAY_PRINT_H

#include <stdbool.h>

/* A line for each definition and call of all ranks on standard output, rank after rank. False,
 * after a message, if something is missing. */
bool print_trace(const char *directory);

#endif
