#include "mismatches.h"

int64_t mismatches_join(MPI_Comm comm, const struct mismatches *mine, bool *names_it) {
  int64_t first, count;
  int rank, ranks, teller;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  MPI_Allreduce(&mine->count, &count, 1, MPI_INT64_T, MPI_SUM, comm);
  MPI_Allreduce(&mine->first, &first, 1, MPI_INT64_T, MPI_MIN, comm);
  /* Ranks may have read the same value. */
  int candidate = mine->count > 0 && mine->first == first ? rank : ranks;
  MPI_Allreduce(&candidate, &teller, 1, MPI_INT, MPI_MIN, comm);
  *names_it = teller == rank;
  return count;
}
