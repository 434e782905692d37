/* What the user reads. Everything goes to stderr; the job's stdout is the job's alone. */
#ifndef FOREBAY_MPI_MESSAGE_H
#define FOREBAY_MPI_MESSAGE_H

/* Prints "forebay: ..." as one write, so that several ranks do not mix their lines. */
void message_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints text as it is. */
void message_print_text(const char *text);

/* Remembers what stderr is. From then on nothing is printed once file descriptor 2 is something
 * else: a program may have closed it, and it may be one of its data files by now. */
void message_start(void);

#endif
