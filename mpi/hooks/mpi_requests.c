/* Hooks for the trace alone: what completes a non-blocking call, frees a type, deletes a file. They
 * pass on at once while no non-blocking call is under way. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "base/real_call.h"
#include "trace/trace.h"

#define AS(SYMBOL, REQUESTS, COUNT, PARAMETERS, ARGUMENTS)                                         \
  int SYMBOL PARAMETERS {                                                                          \
    const void *frame = __builtin_frame_address(0);                                                \
    if (!trace_before_wait(frame, REQUESTS, COUNT))                                                \
      return REAL(SYMBOL) ARGUMENTS;                                                               \
    double start_s = clock_s();                                                                    \
    int64_t ended = trace_call_count();                                                            \
    int code = REAL(SYMBOL) ARGUMENTS;                                                             \
    trace_after_wait(frame, REQUESTS, start_s, ended);                                             \
    return code;                                                                                   \
  }

#define CALL(NAME, REQUESTS, COUNT, PARAMETERS, ARGUMENTS)                                         \
  AS(MPI_##NAME, REQUESTS, COUNT, PARAMETERS, ARGUMENTS)                                           \
  AS(PMPI_##NAME, REQUESTS, COUNT, PARAMETERS, ARGUMENTS)

CALL(Wait, request, 1, (MPI_Request * request, MPI_Status *status), (request, status))
CALL(Test, request, 1, (MPI_Request * request, int *flag, MPI_Status *status),
     (request, flag, status))
CALL(Request_free, request, 1, (MPI_Request * request), (request))
CALL(Waitall, requests, count, (int count, MPI_Request requests[], MPI_Status statuses[]),
     (count, requests, statuses))
CALL(Testall, requests, count,
     (int count, MPI_Request requests[], int *flag, MPI_Status statuses[]),
     (count, requests, flag, statuses))
CALL(Waitany, requests, count, (int count, MPI_Request requests[], int *index, MPI_Status *status),
     (count, requests, index, status))
CALL(Testany, requests, count,
     (int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status),
     (count, requests, index, flag, status))
CALL(Waitsome, requests, count,
     (int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[]),
     (count, requests, done, indices, statuses))
CALL(Testsome, requests, count,
     (int count, MPI_Request requests[], int *done, int indices[], MPI_Status statuses[]),
     (count, requests, done, indices, statuses))

#define TYPE_FREE(SYMBOL)                                                                          \
  int SYMBOL(MPI_Datatype *type) {                                                                 \
    if (trace_is_on && type != NULL)                                                               \
      trace_type_freed(*type);                                                                     \
    return REAL(SYMBOL)(type);                                                                     \
  }

TYPE_FREE(MPI_Type_free)
TYPE_FREE(PMPI_Type_free)

#define DELETE(SYMBOL)                                                                             \
  int SYMBOL(const char *name, MPI_Info info) {                                                    \
    bool is_outermost = trace_is_on && call_claim_outermost(__builtin_frame_address(0));           \
    double start_s = is_outermost ? clock_s() : 0;                                                 \
    int code = REAL(SYMBOL)(name, info);                                                           \
    if (is_outermost)                                                                              \
      trace_delete(start_s, name, info, code);                                                     \
    return code;                                                                                   \
  }

DELETE(MPI_File_delete)
DELETE(PMPI_File_delete)
