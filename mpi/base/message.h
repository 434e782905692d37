/* What the user reads. Everything goes to stderr; the job's stdout is the job's alone. */
#ifndef FOREBAY_MPI_MESSAGE_H
#define FOREBAY_MPI_MESSAGE_H

/* Prints "forebay: ..." as one write, so that several ranks do not mix their lines. */
void message_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints the text as it is. */
void message_write(const char *text);

#endif
