/* Hints between the environment, the program's MPI_Info, and what the MPI says it uses. */
#ifndef FOREBAY_MPI_INFO_H
#define FOREBAY_MPI_INFO_H

#include "base/text.h"
#include "settings/hints.h"

#include <mpi.h>

/* The program's info with the rule's hints for the MPI on top of it; to be freed. */
MPI_Info info_merged(MPI_Info info, const struct hint_rule *rule);

/* Adds a line KEY=VALUE for each key, with blanks for line ends within; an info that is none adds
 * nothing. */
void info_print(MPI_Info info, struct text *lines);

/* One line KEY=VALUE, as parts of the text it stands in. */
struct info_line {
  const char *key, *value;
  int key_bytes, value_bytes;
};

/* Takes the next line that has a '=' and moves *lines behind it; false if there is none. */
bool info_next(const char **lines, struct info_line *line);

/* The value of KEY in such lines, copied to value; false if it is not there. */
bool info_value(const char *lines, const char *key, char *value, size_t room);

#endif
