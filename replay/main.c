/* forebay-replay: issues the I/O of a traced program again, without the program
 * (docs/reference/trace.md). */
#include "issue.h"
#include "options.h"
#include "plan.h"
#include "print.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { EXIT_DIFFERENT = 1, EXIT_USAGE = 2 };

struct summary {
  int64_t calls, bytes, skipped, differences;
  double io_s, total_s;
};

static struct summary sum_over_ranks(const struct outcome *outcome, double total_s) {
  int64_t counts[4] = {outcome->calls, outcome->bytes, outcome->skipped, outcome->differences};
  double seconds[2] = {outcome->io_s, total_s};
  int64_t sums[4];
  double most[2];
  MPI_Allreduce(counts, sums, 4, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(seconds, most, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return (struct summary){sums[0], sums[1], sums[2], sums[3], most[0], most[1]};
}

/* One line of JSON, as the kernels print theirs. */
static void print_summary(const struct summary *summary, const struct options *options, int ranks) {
  printf("{\"replay\":1,\"ranks\":%d,\"calls\":%lld,\"bytes\":%lld,\"skipped\":%lld,"
         "\"differences\":%lld,\"partial\":%s,\"think\":%g,\"io_s\":%.6f,\"total_s\":%.6f}\n",
         ranks, (long long)summary->calls, (long long)summary->bytes, (long long)summary->skipped,
         (long long)summary->differences, options->partial ? "true" : "false", options->think_share,
         summary->io_s, summary->total_s);
}

static int replay(const struct options *options, int rank, int ranks) {
  struct reader reader;
  struct plan plan;
  struct outcome outcome;
  reader_open(&reader, options->trace, rank);
  int status = EXIT_USAGE;
  if (plan_make(&plan, &reader, options)) {
    MPI_Barrier(MPI_COMM_WORLD);
    double start_s = MPI_Wtime();
    issue_all(&plan, &reader, options, &outcome);
    struct summary summary = sum_over_ranks(&outcome, MPI_Wtime() - start_s);
    if (outcome.differences > 0)
      fprintf(stderr, "forebay-replay: not as in the trace: %s\n", outcome.difference);
    if (rank == 0)
      print_summary(&summary, options, ranks);
    status = summary.differences > 0 ? EXIT_DIFFERENT : 0;
  }
  plan_free(&plan);
  reader_close(&reader);
  return status;
}

static bool is_for_print(int count, char **words) {
  for (int i = 1; i < count; i++)
    if (strcmp(words[i], "--print") == 0 || strcmp(words[i], "--help") == 0)
      return true;
  return false;
}

int main(int count, char **words) {
  struct options options;
  int provided, rank, ranks;
  if (is_for_print(count, words)) /* without MPI, and so without mpiexec */
    return options_parse(count, words, true, &options) ? !print_trace(options.trace) : EXIT_USAGE;
  MPI_Init_thread(&count, &words, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int status =
      options_parse(count, words, rank == 0, &options) ? replay(&options, rank, ranks) : EXIT_USAGE;
  MPI_Finalize();
  return status;
}
