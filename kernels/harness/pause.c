#include "pause.h"

#include <errno.h>
#include <mpi.h>
#include <time.h>

void pause_until(double end) {
  double left = end - MPI_Wtime();
  if (left <= 0)
    return;
  struct timespec rest = {.tv_sec = (time_t)left};
  rest.tv_nsec = (long)((left - (double)rest.tv_sec) * 1e9);
  while (nanosleep(&rest, &rest) != 0 && errno == EINTR)
    continue;
}
