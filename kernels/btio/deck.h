/* The five-line input file of the public PnetCDF BTIO benchmark.
 *
 *   w | r            mode
 *   0                method: 0 MPI collective, 1 MPI independent, 2 PnetCDF blocking,
 *                    3 PnetCDF non-blocking
 *   20               number of dumps
 *   64 64 64         grid points nx ny nz
 *   /some/directory  output directory; it may contain blanks
 *
 * Text after '#' is a comment; blank lines are skipped; nothing is expanded. Lines after the fifth
 * must repeat it: scripts append the directory with `echo DIR >> deck`, sometimes once per run, and
 * a different directory there would otherwise be ignored without a word. */
#ifndef BTIO_DECK_H
#define BTIO_DECK_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

enum { AXES = 3, COMPONENTS = 5, METHODS = 4, DIRECTORY_BYTES_MAX = 4096 };

struct deck {
  char mode; /* 'w' or 'r' */
  int method;
  int dumps;
  int grid[AXES]; /* points along x, y, z */
  char directory[DIRECTORY_BYTES_MAX];
};

/* Collective: rank 0 of comm reads the file and prints what is wrong with it; all ranks get the
 * same deck and the same answer. */
bool deck_read(const char *path, MPI_Comm comm, struct deck *deck);

/* Points of one dump; deck_read has made sure that every index of a value fits a double. */
int64_t deck_grid_points(const struct deck *deck);

#endif
