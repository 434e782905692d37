/* The search of IO500: names with 01 of files of 3,901 bytes that are newer than the timestamp. */
#ifndef IO500_FIND_H
#define IO500_FIND_H

#include "phase.h"

/* Walks the directory with all ranks. benchmark->total: names seen; benchmark->found: matches. */
bool find_run(struct benchmark *benchmark);

#endif
