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

/* Dumps that fit side by side: with a read interval, the next one is written over the first. */
static int places(const struct benchmark *benchmark) {
  int interval = benchmark->options.read_interval, dumps = benchmark->deck.dumps;
  return interval > 0 && interval < dumps ? interval : dumps;
}

/* Dumps in the file in the end. What can only be written in sequence ends with the last one. */
static int dumps_left(const struct benchmark *benchmark) {
  int all = places(benchmark);
  return benchmark->variant->rewind != NULL ? (benchmark->deck.dumps - 1) % all + 1 : all;
}

/* The dump that was written last in this place. */
static int dump_left_in(const struct benchmark *benchmark, int place) {
  int last = benchmark->deck.dumps - 1;
  return last - (last - place) % places(benchmark);
}

/* Dumps that are read back before the file is closed. */
static int dumps_read_back(const struct benchmark *benchmark) {
  int interval = benchmark->options.read_interval, dumps = benchmark->deck.dumps;
  return interval > 0 ? dumps / interval * interval : 0;
}

int64_t benchmark_bytes(const struct benchmark *benchmark) {
  const struct deck *deck = &benchmark->deck;
  int64_t dump_bytes = deck_grid_points(deck) * COMPONENTS * (int64_t)sizeof(double);
  if (deck->mode == 'r')
    return dumps_left(benchmark) * dump_bytes;
  return ((int64_t)deck->dumps + dumps_read_back(benchmark)) * dump_bytes;
}

static struct dump_file file_of(struct benchmark *benchmark, struct io_times *times) {
  return (struct dump_file){.variant = benchmark->variant,
                            .comm = benchmark->comm,
                            .path = benchmark->path,
                            .dumps = dumps_left(benchmark),
                            .partition = &benchmark->partition,
                            .layout = &benchmark->layout,
                            .times = times,
                            .collbuf_nodes = benchmark->options.collbuf_nodes,
                            .collbuf_bytes = benchmark->options.collbuf_bytes};
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

/* Reads the dump in a place into a poisoned array, and compares it with --verify. */
static bool read_dump(struct benchmark *benchmark, struct dump_file *file, int place, int dump,
                      struct mismatches *wrong) {
  field_poison(&benchmark->partition, benchmark->values);
  bool good = benchmark->variant->read(file, place, benchmark->values);
  double start = MPI_Wtime();
  if (good && benchmark->options.verify)
    field_compare(&benchmark->partition, dump, benchmark->values, wrong);
  benchmark->report.verify_s += MPI_Wtime() - start;
  return good;
}

static bool rewound(struct benchmark *benchmark, struct dump_file *file) {
  return benchmark->variant->rewind == NULL || benchmark->variant->rewind(file);
}

/* If the dump that was just written fills the file, all that are in it are read back. */
static bool read_back(struct benchmark *benchmark, struct dump_file *file, int dump,
                      struct mismatches *wrong) {
  int interval = benchmark->options.read_interval;
  if (interval == 0 || (dump + 1) % interval != 0)
    return true;
  bool good = rewound(benchmark, file);
  for (int place = 0; place < interval && good; place++)
    good = read_dump(benchmark, file, place, dump + 1 - interval + place, wrong);
  return good && rewound(benchmark, file);
}

static bool write_dumps(struct benchmark *benchmark) {
  struct dump_file file = file_of(benchmark, &benchmark->report.io);
  const struct variant *variant = benchmark->variant;
  struct mismatches wrong = no_mismatches;
  if (benchmark->scratch != NULL)
    field_prepare_relaxation(&benchmark->partition, benchmark->scratch);
  if (!variant->create(&file))
    return false;
  bool good = true;
  for (int dump = 0; dump < benchmark->deck.dumps && good; dump++) {
    compute(benchmark, dump);
    good = variant->write(&file, dump % places(benchmark), benchmark->values) &&
           read_back(benchmark, &file, dump, &wrong);
  }
  if (good && benchmark->options.sync)
    good = variant->sync(&file);
  benchmark->report.calls = file.calls;
  good = good && variant->close(&file);
  if (!good)
    variant->give_up(&file);
  report_mismatches(benchmark, &wrong);
  return good;
}

static bool read_dumps(struct benchmark *benchmark, struct io_times *times, int64_t *calls) {
  struct dump_file file = file_of(benchmark, times);
  const struct variant *variant = benchmark->variant;
  struct mismatches wrong = no_mismatches;
  if (!variant->open(&file))
    return false;
  bool good = true;
  for (int place = 0; place < file.dumps && good; place++)
    good = read_dump(benchmark, &file, place, dump_left_in(benchmark, place), &wrong);
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
  double start = MPI_Wtime(), before_s = benchmark->report.verify_s;
  bool good = read_dumps(benchmark, &not_reported, &not_counted);
  benchmark->report.verify_s = before_s + MPI_Wtime() - start;
  return good;
}

bool benchmark_run(struct benchmark *benchmark) {
  if (benchmark->deck.mode == 'r')
    return read_dumps(benchmark, &benchmark->report.io, &benchmark->report.calls);
  return write_dumps(benchmark) && (!benchmark->options.verify || verify_written(benchmark));
}
