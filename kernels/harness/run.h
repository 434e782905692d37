/* From main to the exit status. */
#ifndef HARNESS_RUN_H
#define HARNESS_RUN_H

/* Starts MPI, calls run with the time at which it was up, ends MPI and returns what run returned:
 * an exit_status, the same on all ranks but for a rank that could not print. */
int run_kernel(int argc, char **argv, int (*run)(int argc, char **argv, double start));

#endif
