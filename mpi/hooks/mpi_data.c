/* The calls of MPI-IO that move data. Each passes the call on and returns what it returned.
 *
 * Both names of each call are hooked: C programs use MPI_..., while Fortran bindings use PMPI_...
 * in Open MPI, and one or the other in MPICH. */
#include "base/real_call.h"
#include "record/call.h"
#include "trace/trace.h"

#include <mpi.h>

#define AS(SYMBOL, DIRECTION, KIND, COUNT, TYPE, PLACE, OFFSET, REQUEST, PARAMETERS, ARGUMENTS)    \
  int SYMBOL PARAMETERS {                                                                          \
    struct call call = CALL_HERE;                                                                  \
    call_begin_data(&call, fh, DIRECTION, KIND, COUNT, TYPE);                                      \
    int code = REAL(SYMBOL) ARGUMENTS;                                                             \
    call_end(&call);                                                                               \
    trace_data(&call, fh, (struct trace_access){PLACE, OFFSET, COUNT, TYPE, REQUEST}, code);       \
    return code;                                                                                   \
  }

#define CALL(NAME, DIRECTION, KIND, PLACE, OFFSET, REQUEST, PARAMETERS, ARGUMENTS)                 \
  AS(MPI_##NAME, DIRECTION, KIND, count, type, PLACE, OFFSET, REQUEST, PARAMETERS, ARGUMENTS)      \
  AS(PMPI_##NAME, DIRECTION, KIND, count, type, PLACE, OFFSET, REQUEST, PARAMETERS, ARGUMENTS)

#define END(NAME, DIRECTION, PLACE, BUFFER)                                                        \
  AS(MPI_##NAME, DIRECTION, SPLIT_END, -1, NO_TYPE, PLACE, 0, NULL,                                \
     (MPI_File fh, BUFFER buffer, MPI_Status * status), (fh, buffer, status))                      \
  AS(PMPI_##NAME, DIRECTION, SPLIT_END, -1, NO_TYPE, PLACE, 0, NULL,                               \
     (MPI_File fh, BUFFER buffer, MPI_Status * status), (fh, buffer, status))

/* Not looked at where there is no count. */
#define NO_TYPE ((MPI_Datatype)0)

/* By file pointer, and at an offset; with a status, a request, or neither. */
#define AT_POINTER(NAME, DIRECTION, KIND, PLACE, BUFFER, COUNT)                                    \
  CALL(NAME, DIRECTION, KIND, PLACE, 0, NULL,                                                      \
       (MPI_File fh, BUFFER buffer, COUNT count, MPI_Datatype type, MPI_Status * status),          \
       (fh, buffer, count, type, status))
#define AT_OFFSET(NAME, DIRECTION, KIND, BUFFER, COUNT)                                            \
  CALL(NAME, DIRECTION, KIND, TRACE_AT, offset, NULL,                                              \
       (MPI_File fh, MPI_Offset offset, BUFFER buffer, COUNT count, MPI_Datatype type,             \
        MPI_Status * status),                                                                      \
       (fh, offset, buffer, count, type, status))
#define REQUEST(NAME, DIRECTION, KIND, PLACE, BUFFER, COUNT)                                       \
  CALL(NAME, DIRECTION, KIND, PLACE, 0, request,                                                   \
       (MPI_File fh, BUFFER buffer, COUNT count, MPI_Datatype type, MPI_Request * request),        \
       (fh, buffer, count, type, request))
#define REQUEST_AT(NAME, DIRECTION, KIND, BUFFER, COUNT)                                           \
  CALL(NAME, DIRECTION, KIND, TRACE_AT, offset, request,                                           \
       (MPI_File fh, MPI_Offset offset, BUFFER buffer, COUNT count, MPI_Datatype type,             \
        MPI_Request * request),                                                                    \
       (fh, offset, buffer, count, type, request))
#define BEGIN(NAME, DIRECTION, PLACE, BUFFER, COUNT)                                               \
  CALL(NAME, DIRECTION, SPLIT_COLLECTIVE, PLACE, 0, NULL,                                          \
       (MPI_File fh, BUFFER buffer, COUNT count, MPI_Datatype type), (fh, buffer, count, type))
#define BEGIN_AT(NAME, DIRECTION, BUFFER, COUNT)                                                   \
  CALL(NAME, DIRECTION, SPLIT_COLLECTIVE, TRACE_AT, offset, NULL,                                  \
       (MPI_File fh, MPI_Offset offset, BUFFER buffer, COUNT count, MPI_Datatype type),            \
       (fh, offset, buffer, count, type))

#define ALL(VERB, SUFFIX, DIRECTION, BUFFER, COUNT)                                                \
  AT_OFFSET(File_##VERB##_at##SUFFIX, DIRECTION, INDEPENDENT, BUFFER, COUNT)                       \
  AT_OFFSET(File_##VERB##_at_all##SUFFIX, DIRECTION, COLLECTIVE, BUFFER, COUNT)                    \
  REQUEST_AT(File_i##VERB##_at##SUFFIX, DIRECTION, NONBLOCKING, BUFFER, COUNT)                     \
  REQUEST_AT(File_i##VERB##_at_all##SUFFIX, DIRECTION, NONBLOCKING_COLLECTIVE, BUFFER, COUNT)      \
  AT_POINTER(File_##VERB##SUFFIX, DIRECTION, INDEPENDENT, TRACE_POINTER, BUFFER, COUNT)            \
  AT_POINTER(File_##VERB##_all##SUFFIX, DIRECTION, COLLECTIVE, TRACE_POINTER, BUFFER, COUNT)       \
  REQUEST(File_i##VERB##SUFFIX, DIRECTION, NONBLOCKING, TRACE_POINTER, BUFFER, COUNT)              \
  REQUEST(File_i##VERB##_all##SUFFIX, DIRECTION, NONBLOCKING_COLLECTIVE, TRACE_POINTER, BUFFER,    \
          COUNT)                                                                                   \
  AT_POINTER(File_##VERB##_shared##SUFFIX, DIRECTION, INDEPENDENT, TRACE_SHARED, BUFFER, COUNT)    \
  AT_POINTER(File_##VERB##_ordered##SUFFIX, DIRECTION, COLLECTIVE, TRACE_SHARED, BUFFER, COUNT)    \
  REQUEST(File_i##VERB##_shared##SUFFIX, DIRECTION, NONBLOCKING, TRACE_SHARED, BUFFER, COUNT)      \
  BEGIN_AT(File_##VERB##_at_all_begin##SUFFIX, DIRECTION, BUFFER, COUNT)                           \
  BEGIN(File_##VERB##_all_begin##SUFFIX, DIRECTION, TRACE_POINTER, BUFFER, COUNT)                  \
  BEGIN(File_##VERB##_ordered_begin##SUFFIX, DIRECTION, TRACE_SHARED, BUFFER, COUNT)

#define ENDS(VERB, DIRECTION, BUFFER)                                                              \
  END(File_##VERB##_at_all_end, DIRECTION, TRACE_AT, BUFFER)                                       \
  END(File_##VERB##_all_end, DIRECTION, TRACE_POINTER, BUFFER)                                     \
  END(File_##VERB##_ordered_end, DIRECTION, TRACE_SHARED, BUFFER)

ALL(read, , READING, void *, int)
ALL(write, , WRITING, const void *, int)
ENDS(read, READING, void *)
ENDS(write, WRITING, const void *)

/* Large counts came with MPI 4. */
#if MPI_VERSION >= 4
ALL(read, _c, READING, void *, MPI_Count)
ALL(write, _c, WRITING, const void *, MPI_Count)
#endif
