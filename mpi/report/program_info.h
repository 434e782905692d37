#ifndef FOREBAY_MPI_PROGRAM_INFO_H
#define FOREBAY_MPI_PROGRAM_INFO_H

#include "base/text.h"

/* Members of the report that tell which program this is, without the braces around them:
 * "program" and "arguments". Does without malloc. */
void program_info_json(struct text *out);

#endif
