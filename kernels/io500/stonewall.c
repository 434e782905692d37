#include "stonewall.h"

#include "options.h"

static const double NEVER_S = 1e9;

void wall_start(struct benchmark *benchmark) {
  MPI_Barrier(benchmark->comm);
  benchmark->wall_s = MPI_Wtime();
}

void wall_stop(struct benchmark *benchmark) {
  double mine = MPI_Wtime() - benchmark->wall_s;
  MPI_Allreduce(&mine, &benchmark->wall_s, 1, MPI_DOUBLE, MPI_MAX, benchmark->comm);
}

/* Operations from `done` on until the limit or the end of the time; the number that are done. */
static int64_t operate(const struct stonewall *stonewall, int64_t done, int64_t limit, double end,
                       const char **fault) {
  while (done < limit && *fault == NULL && MPI_Wtime() < end) {
    *fault = stonewall->operate(stonewall->context, done);
    done += *fault == NULL;
  }
  return done;
}

/* This rank's operations until the stonewall, and what all ranks know of each other then. */
static int64_t until_stonewall(struct benchmark *benchmark, const struct stonewall *stonewall,
                               int64_t limit, const char **fault) {
  const struct options *options = benchmark->options;
  double start = MPI_Wtime();
  double end = start + (options->stonewall_s > 0 ? options->stonewall_s : NEVER_S);
  int64_t done = operate(stonewall, 0, limit, end, fault);
  double took = MPI_Wtime() - start;
  int stopped = done < limit, any;
  MPI_Allreduce(&stopped, &any, 1, MPI_INT, MPI_LOR, benchmark->comm);
  MPI_Allreduce(&took, &benchmark->stonewall_s, 1, MPI_DOUBLE, MPI_MAX, benchmark->comm);
  MPI_Allreduce(&done, &benchmark->stonewall_operations, 1, MPI_INT64_T, MPI_SUM, benchmark->comm);
  MPI_Allreduce(&done, &benchmark->operations, 1, MPI_INT64_T, MPI_MAX, benchmark->comm);
  benchmark->stonewalled = any;
  return done;
}

bool stonewall_run(struct benchmark *benchmark, const struct stonewall *stonewall) {
  const char *fault = NULL;
  int64_t done = until_stonewall(benchmark, stonewall, benchmark->options->limit, &fault);
  if (!attempt_agreed(benchmark->comm, stonewall->path, stonewall->attempt, fault))
    return false;
  operate(stonewall, done, benchmark->operations, MPI_Wtime() + NEVER_S, &fault);
  benchmark->total = benchmark->operations * benchmark->ranks;
  return attempt_agreed(benchmark->comm, stonewall->path, stonewall->attempt, fault);
}

bool stonewall_read(struct benchmark *benchmark, const struct stonewall *stonewall) {
  const char *fault = NULL;
  const struct options *options = benchmark->options;
  int64_t limit = options->stonewall_s > 0 ? INT64_MAX : options->limit;
  until_stonewall(benchmark, stonewall, limit, &fault);
  benchmark->total = benchmark->stonewall_operations;
  return attempt_agreed(benchmark->comm, stonewall->path, stonewall->attempt, fault);
}
