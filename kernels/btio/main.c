/* BTIO: the I/O of NAS BT, in the ways of NAS and of the public PnetCDF benchmark. */
#include "benchmark.h"
#include "harness/message.h"
#include "harness/run.h"
#include "variants.h"

#include <stdio.h>
#include <string.h>

const char kernel_name[] = "btio";

static void set_path(struct benchmark *benchmark) {
  const char *directory = benchmark->deck.directory;
  bool ends_in_slash = directory[strlen(directory) - 1] == '/';
  snprintf(benchmark->path, sizeof benchmark->path, "%s%s%s", directory, ends_in_slash ? "" : "/",
           benchmark->variant->file_name);
}

static void print_setting(const void *setting) {
  const struct benchmark *benchmark = setting;
  const struct deck *deck = &benchmark->deck;
  int ranks;
  MPI_Comm_size(benchmark->comm, &ranks);
  printf(",\"grid\":[%d,%d,%d],\"dumps\":%d,\"read_interval\":%d,\"sweeps\":%d,\"files\":%d",
         deck->grid[0], deck->grid[1], deck->grid[2], deck->dumps, benchmark->options.read_interval,
         deck->mode == 'w' ? benchmark->options.sweeps : 0,
         benchmark->variant->file_per_rank ? ranks : 1);
}

static bool report(struct benchmark *benchmark, double start) {
  char first_of_many[PATH_BYTES_MAX + 8];
  const char *mark = benchmark->variant->file_per_rank ? ".0000" : "";
  snprintf(first_of_many, sizeof first_of_many, "%s%s", benchmark->path, mark);
  benchmark->report.comm = benchmark->comm;
  benchmark->report.variant = benchmark->variant->name;
  benchmark->report.path = first_of_many;
  benchmark->report.mode = benchmark->deck.mode;
  benchmark->report.bytes = benchmark_bytes(benchmark);
  benchmark->report.verify = benchmark->options.verify;
  return report_print(&benchmark->report, print_setting, benchmark, start);
}

static int measure(struct benchmark *benchmark, double start) {
  set_path(benchmark);
  layout_make(&benchmark->partition, &benchmark->layout);
  bool good = benchmark_allocate(benchmark) && benchmark_run(benchmark) &&
              report(benchmark, start) && benchmark->report.mismatches == 0;
  benchmark_free(benchmark);
  layout_free(&benchmark->layout);
  return good ? STATUS_DONE : STATUS_FAILED;
}

static bool choose_variant(struct benchmark *benchmark, int rank) {
  int index = benchmark->options.variant;
  benchmark->variant = variants[index == VARIANT_OF_DECK ? benchmark->deck.method : index];
  bool there = benchmark->variant->create != NULL;
  if (!there)
    complain_once(rank,
                  "%s was left out: this btio was built without %s\n"
                  "hint: install it (Debian: %s), then make",
                  benchmark->variant->name, benchmark->variant->needs, benchmark->variant->package);
  return there;
}

/* Of NAS, only the variant full gives hints. */
static bool check_hints(const struct benchmark *benchmark, int rank) {
  bool taken = benchmark->options.collbuf_nodes == 0 || benchmark->variant == &variant_full;
  if (!taken)
    complain_once(rank, "--collbuf-nodes belongs to --variant full, not to %s",
                  benchmark->variant->name);
  return taken;
}

static int run(int argc, char **argv, double start) {
  struct benchmark benchmark = {.comm = MPI_COMM_WORLD};
  int rank;
  MPI_Comm_rank(benchmark.comm, &rank);
  enum options_outcome outcome = options_parse(argc, argv, rank, &benchmark.options);
  if (outcome != OPTIONS_RUN)
    return outcome == OPTIONS_HELP_SHOWN ? STATUS_DONE : STATUS_USAGE;
  if (!deck_read(benchmark.options.deck, benchmark.comm, &benchmark.deck))
    return STATUS_USAGE;
  if (!choose_variant(&benchmark, rank) || !check_hints(&benchmark, rank))
    return STATUS_USAGE;
  if (!partition_make(&benchmark.deck, benchmark.comm, &benchmark.partition))
    return STATUS_USAGE;
  int status = measure(&benchmark, start);
  partition_free(&benchmark.partition);
  return status;
}

int main(int argc, char **argv) { return run_kernel(argc, argv, run); }
