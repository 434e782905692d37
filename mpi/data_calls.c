/* The calls of MPI-IO that move data. Each passes the call on and returns what it returned.
 *
 * Both names of each call are hooked: C programs use MPI_..., while Fortran bindings use PMPI_...
 * in Open MPI, and one or the other in MPICH. */
#include "call.h"
#include "next.h"

#include <mpi.h>

#define AS(SYMBOL, DIRECTION, KIND, COUNT, TYPE, PARAMETERS, ARGUMENTS)                            \
  int SYMBOL PARAMETERS {                                                                          \
    struct call call = CALL_HERE;                                                                  \
    call_begin_data(&call, fh, DIRECTION, KIND, COUNT, TYPE);                                      \
    int code = NEXT(SYMBOL) ARGUMENTS;                                                             \
    call_end(&call);                                                                               \
    return code;                                                                                   \
  }

#define CALL(NAME, DIRECTION, KIND, PARAMETERS, ARGUMENTS)                                         \
  AS(MPI_##NAME, DIRECTION, KIND, count, type, PARAMETERS, ARGUMENTS)                              \
  AS(PMPI_##NAME, DIRECTION, KIND, count, type, PARAMETERS, ARGUMENTS)

#define END(NAME, DIRECTION, BUFFER)                                                               \
  AS(MPI_##NAME, DIRECTION, SPLIT_END, -1, NO_TYPE,                                                \
     (MPI_File fh, BUFFER buffer, MPI_Status * status), (fh, buffer, status))                      \
  AS(PMPI_##NAME, DIRECTION, SPLIT_END, -1, NO_TYPE,                                               \
     (MPI_File fh, BUFFER buffer, MPI_Status * status), (fh, buffer, status))

/* Not looked at where there is no count. */
#define NO_TYPE ((MPI_Datatype)0)

/* By file pointer, and at an offset; with a status, a request, or neither. */
#define AT_POINTER(NAME, DIRECTION, KIND, BUFFER, COUNT)                                           \
  CALL(NAME, DIRECTION, KIND,                                                                      \
       (MPI_File fh, BUFFER buffer, COUNT count, MPI_Datatype type, MPI_Status * status),          \
       (fh, buffer, count, type, status))
#define AT_OFFSET(NAME, DIRECTION, KIND, BUFFER, COUNT)                                            \
  CALL(NAME, DIRECTION, KIND,                                                                      \
       (MPI_File fh, MPI_Offset offset, BUFFER buffer, COUNT count, MPI_Datatype type,             \
        MPI_Status * status),                                                                      \
       (fh, offset, buffer, count, type, status))
#define REQUEST(NAME, DIRECTION, KIND, BUFFER, COUNT)                                              \
  CALL(NAME, DIRECTION, KIND,                                                                      \
       (MPI_File fh, BUFFER buffer, COUNT count, MPI_Datatype type, MPI_Request * request),        \
       (fh, buffer, count, type, request))
#define REQUEST_AT(NAME, DIRECTION, KIND, BUFFER, COUNT)                                           \
  CALL(NAME, DIRECTION, KIND,                                                                      \
       (MPI_File fh, MPI_Offset offset, BUFFER buffer, COUNT count, MPI_Datatype type,             \
        MPI_Request * request),                                                                    \
       (fh, offset, buffer, count, type, request))
#define BEGIN(NAME, DIRECTION, BUFFER, COUNT)                                                      \
  CALL(NAME, DIRECTION, SPLIT_COLLECTIVE,                                                          \
       (MPI_File fh, BUFFER buffer, COUNT count, MPI_Datatype type), (fh, buffer, count, type))
#define BEGIN_AT(NAME, DIRECTION, BUFFER, COUNT)                                                   \
  CALL(NAME, DIRECTION, SPLIT_COLLECTIVE,                                                          \
       (MPI_File fh, MPI_Offset offset, BUFFER buffer, COUNT count, MPI_Datatype type),            \
       (fh, offset, buffer, count, type))

#define ALL(VERB, SUFFIX, DIRECTION, BUFFER, COUNT)                                                \
  AT_OFFSET(File_##VERB##_at##SUFFIX, DIRECTION, INDEPENDENT, BUFFER, COUNT)                       \
  AT_OFFSET(File_##VERB##_at_all##SUFFIX, DIRECTION, COLLECTIVE, BUFFER, COUNT)                    \
  REQUEST_AT(File_i##VERB##_at##SUFFIX, DIRECTION, NONBLOCKING, BUFFER, COUNT)                     \
  REQUEST_AT(File_i##VERB##_at_all##SUFFIX, DIRECTION, NONBLOCKING_COLLECTIVE, BUFFER, COUNT)      \
  AT_POINTER(File_##VERB##SUFFIX, DIRECTION, INDEPENDENT, BUFFER, COUNT)                           \
  AT_POINTER(File_##VERB##_all##SUFFIX, DIRECTION, COLLECTIVE, BUFFER, COUNT)                      \
  REQUEST(File_i##VERB##SUFFIX, DIRECTION, NONBLOCKING, BUFFER, COUNT)                             \
  REQUEST(File_i##VERB##_all##SUFFIX, DIRECTION, NONBLOCKING_COLLECTIVE, BUFFER, COUNT)            \
  AT_POINTER(File_##VERB##_shared##SUFFIX, DIRECTION, INDEPENDENT, BUFFER, COUNT)                  \
  AT_POINTER(File_##VERB##_ordered##SUFFIX, DIRECTION, COLLECTIVE, BUFFER, COUNT)                  \
  REQUEST(File_i##VERB##_shared##SUFFIX, DIRECTION, NONBLOCKING, BUFFER, COUNT)                    \
  BEGIN_AT(File_##VERB##_at_all_begin##SUFFIX, DIRECTION, BUFFER, COUNT)                           \
  BEGIN(File_##VERB##_all_begin##SUFFIX, DIRECTION, BUFFER, COUNT)                                 \
  BEGIN(File_##VERB##_ordered_begin##SUFFIX, DIRECTION, BUFFER, COUNT)

#define ENDS(VERB, DIRECTION, BUFFER)                                                              \
  END(File_##VERB##_at_all_end, DIRECTION, BUFFER)                                                 \
  END(File_##VERB##_all_end, DIRECTION, BUFFER)                                                    \
  END(File_##VERB##_ordered_end, DIRECTION, BUFFER)

ALL(read, , READING, void *, int)
ALL(write, , WRITING, const void *, int)
ENDS(read, READING, void *)
ENDS(write, WRITING, const void *)

/* Large counts came with MPI 4. */
#if MPI_VERSION >= 4
ALL(read, _c, READING, void *, MPI_Count)
ALL(write, _c, WRITING, const void *, MPI_Count)
#endif
