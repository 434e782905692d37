/* Descriptors that the program was started with: `program > file`, `program < file`, `exec 3> file`
 * in the shell before it. */
#ifndef FOREBAY_MPI_INHERITED_H
#define FOREBAY_MPI_INHERITED_H

/* Before the program runs, and before anything is observed: binds those that are open on files to
 * record. */
void inherited_begin(void);

#endif
