#include "attempt.h"

#include "message.h"

#include <stddef.h>

const char hint_out_of_space[] =
    "\nhint: is the file system full, or a quota or a file size limit (ulimit -f) reached?";

const char hint_no_place[] =
    "\nhint: the output directory must exist, and you must be allowed to write in it";

bool attempt_agreed(MPI_Comm comm, const char *path, const struct attempt *attempt,
                    const char *fault) {
  int rank, ranks, failing;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  int mine = fault == NULL ? ranks : rank;
  MPI_Allreduce(&mine, &failing, 1, MPI_INT, MPI_MIN, comm);
  if (failing == rank)
    complain("%s on rank %d: %s: %s%s", attempt->name, rank, path, fault, attempt->hint);
  return failing == ranks;
}

bool attempt_succeeded(MPI_Comm comm, const char *path, const struct attempt *attempt, int code) {
  char fault[MPI_MAX_ERROR_STRING];
  int length;
  if (code != MPI_SUCCESS)
    MPI_Error_string(code, fault, &length);
  return attempt_agreed(comm, path, attempt, code == MPI_SUCCESS ? NULL : fault);
}

bool attempt_memory(MPI_Comm comm, bool got, const char *what, const char *hint) {
  int rank, mine = got, all;
  MPI_Comm_rank(comm, &rank);
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_LAND, comm);
  if (!all)
    complain_once(rank, "not enough memory for %s\nhint: %s", what, hint);
  return all;
}
