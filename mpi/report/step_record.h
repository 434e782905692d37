/* The record of this program as one step of a job: DIR/step-MS-PID.json, where DIR is what
 * FOREBAY_PROFILE names, MS the start in milliseconds since 1970 and PID the process of rank 0.
 * It is there, unfinished, from MPI_Init on; docs/explanation/profiles.md has the fields. */
#ifndef FOREBAY_MPI_STEP_RECORD_H
#define FOREBAY_MPI_STEP_RECORD_H

#include "base/text.h"

/* After settings_share; collective over all ranks if a record or a report is wanted. */
void step_begin(void);

/* On rank 0: the whole step in place of the unfinished one. */
void step_end(const struct text *json);

/* On the rank that calls MPI_Abort: notes it in the unfinished step. Allocates nothing, for a
 * program may abort in a signal handler. */
void step_note_abort(int code);

#endif
