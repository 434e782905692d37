/* Hints between the environment, the program's MPI_Info, and what the MPI says it uses. */
#ifndef FOREBAY_MPI_INFO_H
#define FOREBAY_MPI_INFO_H

#include "hints.h"
#include "text.h"

#include <mpi.h>

/* The program's info with the rule's hints on top of it; to be freed. */
MPI_Info info_merged(MPI_Info info, const struct hint_rule *rule);

/* Adds a line KEY=VALUE for each key; an info that is none adds nothing. */
void info_print(MPI_Info info, struct text *lines);

/* The value of KEY in such lines, copied to value; false if it is not there. */
bool info_value(const char *lines, const char *key, char *value, size_t room);

#endif
