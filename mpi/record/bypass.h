/* What goes around the hooks, by name: a list in the record. */
#ifndef FOREBAY_MPI_BYPASS_H
#define FOREBAY_MPI_BYPASS_H

#include <stdbool.h>

/* The directory of the record. Before this nothing is noted. */
void bypass_begin(const char *directory);

/* Whether anything is noted. */
bool bypass_is_wanted(void);

/* Ways of this process, each noted once. */
enum bypass { BYPASS_IO_URING, BYPASS_KERNEL_AIO, BYPASS_MPI, BYPASS_FOREIGN_MPI, BYPASSES };
void bypass_note(enum bypass how);

/* The file is about to be executed: notes it if the library cannot be loaded into it. Makes a few
 * system calls, and none of them on a file that is recorded. Safe in a child of vfork. */
void bypass_note_program(const char *path);

#endif
