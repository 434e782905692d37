#include "benchmark.h"

#include "message.h"

#include <stdlib.h>

static bool computes(const struct benchmark *benchmark) {
  return benchmark->deck.mode == 'w' && benchmark->options.sweeps > 0;
}

bool benchmark_allocate(struct benchmark *benchmark) {
  int rank, good, all_good;
  MPI_Comm_rank(benchmark->comm, &rank);
  benchmark->values = field_allocate(&benchmark->partition);
  if (computes(benchmark))
    benchmark->scratch = field_allocate(&benchmark->partition);
  good = benchmark->values != NULL && (!computes(benchmark) || benchmark->scratch != NULL);
  MPI_Allreduce(&good, &all_good, 1, MPI_INT, MPI_LAND, benchmark->comm);
  if (!all_good)
    complain_once(rank, "not enough memory for the cells of a rank\n"
                        "hint: run on more ranks or use a smaller grid");
  return all_good;
}

void benchmark_free(struct benchmark *benchmark) {
  free(benchmark->scratch);
  free(benchmark->values);
}

/* BT's share of a dump: the time steps, each ending in a residual known to all ranks. */
static void compute(struct benchmark *benchmark, int dump) {
  double start = MPI_Wtime();
  for (int sweep = 0; sweep < benchmark->options.sweeps; sweep++) {
    double squares = field_relax(&benchmark->partition, benchmark->scratch), residual;
    MPI_Allreduce(&squares, &residual, 1, MPI_DOUBLE, MPI_SUM, benchmark->comm);
  }
  field_fill(&benchmark->partition, dump, benchmark->values);
  benchmark->compute_s += MPI_Wtime() - start;
}

static struct shared_file file_of(struct benchmark *benchmark, struct io_times *times) {
  return (struct shared_file){.comm = benchmark->comm,
                              .path = benchmark->path,
                              .partition = &benchmark->partition,
                              .layout = &benchmark->layout,
                              .times = times,
                              .handle = MPI_FILE_NULL};
}

static bool write_dumps(struct benchmark *benchmark) {
  struct shared_file file = file_of(benchmark, &benchmark->io);
  if (benchmark->scratch != NULL)
    field_prepare_relaxation(&benchmark->partition, benchmark->scratch);
  if (!shared_file_create(&file))
    return false;
  bool good = true;
  for (int dump = 0; dump < benchmark->deck.dumps && good; dump++) {
    compute(benchmark, dump);
    good = shared_file_write(&file, dump, benchmark->values);
  }
  if (good && benchmark->options.sync)
    good = shared_file_sync(&file);
  if (good && shared_file_has_size(&file, deck_file_bytes(&benchmark->deck)))
    return shared_file_close(&file);
  shared_file_give_up(&file);
  return false;
}

/* Adds up the ranks' findings; the rank that has the first wrong value names it. */
static void report_mismatches(struct benchmark *benchmark, const struct mismatches *mine) {
  int64_t first, count;
  MPI_Allreduce(&mine->count, &count, 1, MPI_INT64_T, MPI_SUM, benchmark->comm);
  MPI_Allreduce(&mine->first, &first, 1, MPI_INT64_T, MPI_MIN, benchmark->comm);
  benchmark->mismatches += count;
  if (count == 0 || mine->first != first)
    return;
  const int *grid = benchmark->deck.grid;
  int64_t point = first / COMPONENTS, line = point / grid[0], plane = line / grid[1];
  complain("%s: wrong value at dump %lld, x %lld, y %lld, z %lld, component %lld "
           "(all from 0; byte %lld): expected %lld, found %.17g; %lld of all values are wrong",
           benchmark->path, (long long)(plane / grid[2]), (long long)(point % grid[0]),
           (long long)(line % grid[1]), (long long)(plane % grid[2]),
           (long long)(first % COMPONENTS), (long long)(first * (int64_t)sizeof(double)),
           (long long)(first + 1), mine->found, (long long)count);
}

/* Reads all dumps, each into a poisoned array, and compares them if asked to. */
static bool read_dumps(struct benchmark *benchmark, struct io_times *times) {
  struct shared_file file = file_of(benchmark, times);
  struct mismatches wrong = no_mismatches;
  if (!shared_file_open(&file))
    return false;
  bool good = shared_file_has_size(&file, deck_file_bytes(&benchmark->deck));
  for (int dump = 0; dump < benchmark->deck.dumps && good; dump++) {
    field_poison(&benchmark->partition, benchmark->values);
    good = shared_file_read(&file, dump, benchmark->values);
    double start = MPI_Wtime();
    if (good && benchmark->options.verify)
      field_compare(&benchmark->partition, dump, benchmark->values, &wrong);
    benchmark->verify_s += MPI_Wtime() - start;
  }
  if (good)
    good = shared_file_close(&file);
  else
    shared_file_give_up(&file);
  report_mismatches(benchmark, &wrong);
  return good;
}

static bool verify_written(struct benchmark *benchmark) {
  struct io_times not_reported = {0};
  double start = MPI_Wtime();
  bool good = read_dumps(benchmark, &not_reported);
  benchmark->verify_s = MPI_Wtime() - start;
  return good;
}

bool benchmark_run(struct benchmark *benchmark) {
  if (benchmark->deck.mode == 'r')
    return read_dumps(benchmark, &benchmark->io);
  return write_dumps(benchmark) && (!benchmark->options.verify || verify_written(benchmark));
}
