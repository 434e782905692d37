/* What the user reads on stderr, and the exit status that goes with it. */
#ifndef BTIO_MESSAGE_H
#define BTIO_MESSAGE_H

enum exit_status {
  STATUS_DONE = 0,
  STATUS_FAILED = 1, /* an MPI-IO call failed, or the file holds wrong values */
  STATUS_USAGE = 2,  /* the command line, the deck or the number of ranks cannot be used */
};

/* Prints "btio: error: ..." on stderr. A hint goes into the same text as "\nhint: ...". */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* For faults that every rank sees alike: only rank 0 prints. */
void complain_once(int rank, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
