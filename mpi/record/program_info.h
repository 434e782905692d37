#ifndef FOREBAY_MPI_PROGRAM_INFO_H
#define FOREBAY_MPI_PROGRAM_INFO_H

#include "base/text.h"

enum { HOST_BYTES_MAX = 256 };

struct program_header {
  int hosts, ranks;
  double started_unix_s, wall_s; /* NAN: not known yet */
  bool is_finished;
  const char *trace, *mpi; /* NULL: none */
};

/* Adds the members of a report that name the program and say how it ran
 * (docs/explanation/profiles.md), without the braces around them. Does without malloc. */
void program_header_json(const struct program_header *header, struct text *out);

#endif
