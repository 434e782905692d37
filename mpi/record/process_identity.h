/* What tells a process from a later one with its number. */
#ifndef FOREBAY_MPI_PROCESS_IDENTITY_H
#define FOREBAY_MPI_PROCESS_IDENTITY_H

#include <stdint.h>

/* When the process began, in clock ticks since boot; 0: there is none, or it is a zombie. */
uint64_t start_ticks_of(int pid);

/* 0: there is no such process, or it has no parent that is seen here. */
int parent_of(int pid);

/* In which process numbers are valid here; 0: not known. */
uint64_t pid_namespace(void);

#endif
