#include "report.h"

#include "json.h"
#include "message.h"

#include <inttypes.h>
#include <string.h>

/* Each is the maximum over the ranks, so they do not add up exactly. */
enum { TOTAL, IO, OPEN, WRITE, READ, SYNC, CLOSE, COMPUTE, VERIFY, TIMES };

static const char *const time_names[TIMES] = {
    "total_s", "io_s", "open_s", "write_s", "read_s", "sync_s", "close_s", "compute_s", "verify_s"};

static void slowest_rank(const struct report *report, double total_s, double slowest[TIMES]) {
  const struct io_times *io = &report->io;
  double mine[TIMES] = {
      [TOTAL] = total_s,
      [IO] = io->open_s + io->write_s + io->read_s + io->sync_s + io->close_s,
      [OPEN] = io->open_s,
      [WRITE] = io->write_s,
      [READ] = io->read_s,
      [SYNC] = io->sync_s,
      [CLOSE] = io->close_s,
      [COMPUTE] = report->compute_s,
      [VERIFY] = report->verify_s,
  };
  MPI_Reduce(mine, slowest, TIMES, MPI_DOUBLE, MPI_MAX, 0, report->comm);
}

/* "Open MPI v4.1.4", "MPICH Version: 4.0.2" out of a version text that goes on after a comma or a
 * line end. */
static void print_mpi_version(void) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  MPI_Get_library_version(version, &length);
  version[strcspn(version, ",\n")] = '\0';
  for (char *tab = version; (tab = strchr(tab, '\t')) != NULL;)
    *tab = ' ';
  json_print_string(stdout, version);
}

static const char *verdict(const struct report *report) {
  if (!report->verify)
    return "null";
  return report->mismatches == 0 ? "true" : "false";
}

bool report_print(const struct report *report, void (*print_setting)(const void *setting),
                  const void *setting, double start) {
  double slowest[TIMES];
  int64_t calls = 0;
  int rank, ranks;
  MPI_Comm_rank(report->comm, &rank);
  MPI_Comm_size(report->comm, &ranks);
  slowest_rank(report, MPI_Wtime() - start, slowest);
  MPI_Reduce(&report->calls, &calls, 1, MPI_INT64_T, MPI_SUM, 0, report->comm);
  if (rank != 0)
    return true;
  printf("{\"kernel\":\"%s\",\"variant\":\"%s\",\"ranks\":%d", kernel_name, report->variant, ranks);
  print_setting(setting);
  printf(",\"bytes\":%" PRId64 ",\"calls\":%" PRId64 ",\"path\":", report->bytes, calls);
  json_print_string(stdout, report->path);
  printf(",\"mode\":\"%c\"", report->mode);
  for (int time = 0; time < TIMES; time++)
    printf(",\"%s\":%.6f", time_names[time], slowest[time]);
  printf(",\"verified\":%s,\"mismatches\":%" PRId64 ",\"mpi\":", verdict(report),
         report->mismatches);
  print_mpi_version();
  printf("}\n");
  bool good = fflush(stdout) == 0 && !ferror(stdout);
  if (!good)
    complain("standard output: the result could not be written");
  return good;
}
