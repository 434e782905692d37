/* What the user reads on stderr, and the exit status that goes with it. */
#ifndef HARNESS_MESSAGE_H
#define HARNESS_MESSAGE_H

enum exit_status {
  STATUS_DONE = 0,
  STATUS_FAILED = 1, /* an I/O call failed, or a file holds wrong values */
  STATUS_USAGE = 2,  /* the command line, an input text or the number of ranks cannot be used */
};

/* The name of the kernel, which begins each message and is in the JSON line. */
extern const char kernel_name[];

/* Prints "NAME: error: ..." on stderr. A hint goes into the same text as "\nhint: ...". */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* For faults that every rank sees alike: only rank 0 prints. */
void complain_once(int rank, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
