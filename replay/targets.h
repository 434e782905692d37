/* The files as they have to be before the first call, made by rank 0. */
#ifndef FOREBAY_REPLAY_TARGETS_H
#define FOREBAY_REPLAY_TARGETS_H

#include "options.h"

#include <stddef.h>

enum { TARGETS_PROBLEM_BYTES = 16384 };

/* paths: of all ranks, each as moment (INT64_MAX: never looked), bytes or -1, is written, string.
 * What the program found at its first look is made so: what was not there is not, what was there
 * has its size. Nothing is touched if any file may not be; then problem says why. */
void targets_prepare(const char *paths, size_t length, const struct options *options,
                     char *problem);

#endif
