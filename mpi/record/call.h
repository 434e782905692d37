/* The call to MPI-IO that this thread is in. Only the outermost counts: what the MPI, its Fortran
 * bindings or another tool calls inside of it is part of it. */
#ifndef FOREBAY_MPI_CALL_H
#define FOREBAY_MPI_CALL_H

#include "record/file_record.h"

#include <mpi.h>

enum call_class { CALL_OPEN, CALL_CLOSE, CALL_METADATA, CALL_SYNC, CALL_DATA };

struct call {
  struct file *file; /* NULL: nothing is observed */
  const void *frame; /* of the hook; set before call_begin, see CALL_HERE */
  enum call_class class;
  enum direction direction; /* of CALL_DATA */
  enum call_kind kind;      /* of CALL_DATA */
  double start_s, data_s, other_s;
  double end_s;             /* set by call_end */
  int64_t trace_call_count; /* see trace.h */
  int64_t wrote_calls;      /* system writes in this call */
  int64_t asked_bytes;      /* of CALL_DATA */
};

/* Initialises a struct call in a function that is on the stack until call_end. */
#define CALL_HERE                                                                                  \
  { .frame = __builtin_frame_address(0) }

/* NULL outside of MPI-IO. */
struct call *call_current(void);

/* True if a call on a file that begins now would be the outermost, and is to be observed.
 * A call that was left by an exception or longjmp is forgotten as soon as a hook begins whose frame
 * is not below that call's. */
bool call_claim_outermost(const void *frame);

void call_begin(struct call *call, enum call_class class, struct file *file);
void call_end(struct call *call);

/* A call that moves data: count elements of a type, or count -1 for the end of a split one. */
void call_begin_data(struct call *call, MPI_File handle, enum direction direction,
                     enum call_kind kind, int64_t count, MPI_Datatype type);

#endif
