#include "benchmark.h"

#include "harness/message.h"

#include <stdlib.h>

static bool computes(const struct benchmark *benchmark) {
  return benchmark->deck.mode == 'w' && benchmark->options.sweeps > 0;
}

bool benchmark_allocate(struct benchmark *benchmark) {
  benchmark->values = field_allocate(&benchmark->partition);
  if (computes(benchmark))
    benchmark->scratch = field_allocate(&benchmark->partition);
  bool got = benchmark->values != NULL && (!computes(benchmark) || benchmark->scratch != NULL);
  return attempt_memory(benchmark->comm, got, "the cells of a rank",
                        "run on more ranks or use a smaller grid");
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
  benchmark->report.compute_s += MPI_Wtime() - start;
}

static struct dump_file file_of(struct benchmark *benchmark, struct io_times *times) {
  return (struct dump_file){.variant = benchmark->variant,
                            .comm = benchmark->comm,
                            .path = benchmark->path,
                            .dumps = benchmark->deck.dumps,
                            .partition = &benchmark->partition,
                            .layout = &benchmark->layout,
                            .times = times};
}

static bool write_dumps(struct benchmark *benchmark) {
  struct dump_file file = file_of(benchmark, &benchmark->report.io);
  const struct variant *variant = benchmark->variant;
  if (benchmark->scratch != NULL)
    field_prepare_relaxation(&benchmark->partition, benchmark->scratch);
  if (!variant->create(&file))
    return false;
  bool good = true;
  for (int dump = 0; dump < benchmark->deck.dumps && good; dump++) {
    compute(benchmark, dump);
    good = variant->write(&file, dump, benchmark->values);
  }
  if (good && benchmark->options.sync)
    good = variant->sync(&file);
  benchmark->report.calls = file.calls;
  good = good && variant->close(&file);
  if (!good)
    variant->give_up(&file);
  return good;
}

/* Adds up the ranks' findings; the rank that has the first wrong value names it. */
static void report_mismatches(struct benchmark *benchmark, const struct mismatches *mine) {
  bool names_it;
  int64_t count = mismatches_join(benchmark->comm, mine, &names_it), first = mine->first;
  benchmark->report.mismatches += count;
  if (!names_it)
    return;
  const int *grid = benchmark->deck.grid;
  int64_t point = first / COMPONENTS, line = point / grid[0], plane = line / grid[1];
  complain("%s: wrong value at dump %lld, x %lld, y %lld, z %lld, component %lld "
           "(all from 0; byte %lld of all values): expected %lld, found %.17g; "
           "%lld of all values are wrong",
           benchmark->path, (long long)(plane / grid[2]), (long long)(point % grid[0]),
           (long long)(line % grid[1]), (long long)(plane % grid[2]),
           (long long)(first % COMPONENTS), (long long)(first * (int64_t)sizeof(double)),
           (long long)(first + 1), mine->found, (long long)count);
}

/* Reads all dumps, each into a poisoned array, and compares them if asked to. */
static bool read_dumps(struct benchmark *benchmark, struct io_times *times, int64_t *calls) {
  struct dump_file file = file_of(benchmark, times);
  const struct variant *variant = benchmark->variant;
  struct mismatches wrong = no_mismatches;
  if (!variant->open(&file))
    return false;
  bool good = true;
  for (int dump = 0; dump < benchmark->deck.dumps && good; dump++) {
    field_poison(&benchmark->partition, benchmark->values);
    good = variant->read(&file, dump, benchmark->values);
    double start = MPI_Wtime();
    if (good && benchmark->options.verify)
      field_compare(&benchmark->partition, dump, benchmark->values, &wrong);
    benchmark->report.verify_s += MPI_Wtime() - start;
  }
  *calls = file.calls;
  good = good && variant->close(&file);
  if (!good)
    variant->give_up(&file);
  report_mismatches(benchmark, &wrong);
  return good;
}

static bool verify_written(struct benchmark *benchmark) {
  struct io_times not_reported = {0};
  int64_t not_counted;
  double start = MPI_Wtime();
  bool good = read_dumps(benchmark, &not_reported, &not_counted);
  benchmark->report.verify_s = MPI_Wtime() - start;
  return good;
}

bool benchmark_run(struct benchmark *benchmark) {
  if (benchmark->deck.mode == 'r')
    return read_dumps(benchmark, &benchmark->report.io, &benchmark->report.calls);
  return write_dumps(benchmark) && (!benchmark->options.verify || verify_written(benchmark));
}
