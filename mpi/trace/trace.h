/* The trace: every call to MPI-IO, and every system call on those files, in a file for each rank,
 * enough to issue them again without the program (docs/reference/trace.md).
 *
 * All hooks are called after the call that they record, outside of its measured time. Without a
 * trace, or where the call was not the outermost, they return at once. */
#ifndef FOREBAY_MPI_TRACE_H
#define FOREBAY_MPI_TRACE_H

#include "record/call.h"
#include "record/io_event.h"
#include "record/trace_state.h"

#include <mpi.h>
#include <stdbool.h>

#define TRACE_BYTES_MAX_VARIABLE "FOREBAY_MPI_TRACE_BYTES_MAX"

/* Collective: rank 0 sends all ranks whether and where to write a trace. True if there is one. */
bool trace_share(void);

/* Makes this rank's file. Processes made by MPI_Comm_spawn have one in a record only, where each
 * program's trace has a name of its own. */
void trace_start(bool was_spawned);

/* Writes what waits and the trailer. After TRACE_FINALIZED, which is collective, rank 0 says what
 * was lost. */
void trace_stop(enum trace_end end);

/* The directory's name in the job's record; NULL if there is no trace, or its directory is
 * elsewhere. */
const char *trace_name(void);

/* Bytes of the file that is about to be opened, TRACE_ABSENT or TRACE_NOT_LOOKED. */
int64_t trace_size_before(const struct call *call, const char *path, MPI_Comm comm);

void trace_open(const struct call *call, MPI_Comm comm, const char *name, int mode, MPI_Info info,
                MPI_File handle, int64_t size_before, int code);

/* Removes the handle and returns the number of its opening, or -1. */
int64_t trace_drop_handle(const struct call *call, MPI_File handle);
void trace_close(const struct call *call, int64_t opening, int code);

struct trace_access {
  enum trace_place place;
  MPI_Offset offset; /* TRACE_AT */
  int64_t count;     /* -1: the end of a split call */
  MPI_Datatype type;
  MPI_Request *request; /* NULL: it is not a non-blocking call */
};

void trace_data(const struct call *call, MPI_File handle, struct trace_access access, int code);

void trace_view(const struct call *call, MPI_File handle, MPI_Offset displacement,
                MPI_Datatype element, MPI_Datatype type, const char *representation, MPI_Info info,
                int code);

/* A call with up to two numbers of its own: a size, a flag, an offset and where it counts from. */
void trace_number(const struct call *call, MPI_File handle, enum trace_tag tag, int64_t number,
                  int code);
void trace_seek(const struct call *call, MPI_File handle, enum trace_tag tag, MPI_Offset offset,
                int whence, int code);
void trace_set_info(const struct call *call, MPI_File handle, MPI_Info info, int code);

void trace_delete(double start_s, const char *path, MPI_Info info, int code);

/* Between a non-blocking call and the call that completes it. */
void trace_request(MPI_Request request, int64_t number);

/* Around a call that may complete requests; frame: of its hook. Call
 * the second only where the first returned true. mark: trace_call_count at the start of the call.
 */
bool trace_before_wait(const void *frame, const MPI_Request *requests, int count);
void trace_after_wait(const void *frame, const MPI_Request *requests, double start_s, int64_t mark);

/* A type is about to be freed: its handle may come back as another type. */
void trace_type_freed(MPI_Datatype type);

/* System calls, and calls on streams. */
void trace_system_data(struct file *file, const struct transfer *transfer, double elapsed_s);

/* argument: of a seek the new position; of a truncation, a mapping or an allocation the length or
 * the end, negative: unknown; of a sync 1 for fflush; else 0. */
void trace_system_other(struct file *file, enum trace_system what, int64_t argument,
                        double elapsed_s);

/* What the program has open when the trace begins, as if it were opened now. */
void trace_system_open_already(void);

/* Ahead of an open: how large the file is. Changes nothing else, errno neither. */
int64_t trace_size_before_open(int directory, const char *path);
void trace_system_open(struct file *file, const struct opening *opening);

#endif
