/* Which program a report is about, and how it ran. */
#ifndef FOREBAY_MPI_REPORT_HEADER_H
#define FOREBAY_MPI_REPORT_HEADER_H

#include "base/text.h"

/* Collective over all ranks, before the header is made. */
void report_count_hosts(void);

/* The members that name the program and say how it ran, without the braces around them.
 * wall_s: from MPI_Init to MPI_Finalize; negative: it is not finished. */
void report_header_json(double wall_s, struct text *out);

#endif
