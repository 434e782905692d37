/* A program without MPI that is part of a recorded job. */
#ifndef FOREBAY_MPI_PROCESS_H
#define FOREBAY_MPI_PROCESS_H

#include "base/text.h"

/* Members of the report that tell which program this is, without the braces around them:
 * "program" and "arguments". Does without malloc. */
void process_program_json(struct text *out);

#endif
