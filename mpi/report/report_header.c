#define _GNU_SOURCE
#include "report/report_header.h"

#include "base/library.h"
#include "base/path.h"
#include "record/program_info.h"
#include "settings/settings.h"
#include "trace/trace.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static int hosts;

static uint64_t hash_of_host(void) {
  char name[HOST_BYTES_MAX] = "";
  gethostname(name, sizeof name - 1);
  return path_hash(name, 0);
}

static int by_value(const void *one, const void *other) {
  uint64_t first = *(const uint64_t *)one, second = *(const uint64_t *)other;
  return (first > second) - (first < second);
}

void report_count_hosts(void) {
  uint64_t own = hash_of_host(), *all = NULL;
  if (settings.rank == 0 && (all = calloc((size_t)settings.ranks, sizeof *all)) == NULL)
    abort(); /* at start, and the other ranks wait: nothing sensible is left to do */
  library.Gather(&own, sizeof own, library.byte, all, sizeof own, library.byte, 0, library.world);
  if (all == NULL)
    return;
  qsort(all, (size_t)settings.ranks, sizeof *all, by_value);
  hosts = 1;
  for (int i = 1; i < settings.ranks; i++)
    hosts += all[i] != all[i - 1];
  free(all);
}

void report_header_json(double wall_s, struct text *out) {
  bool is_finished = wall_s >= 0;
  struct program_header header = {.hosts = hosts,
                                  .ranks = settings.ranks,
                                  .started_unix_s = settings.started_unix_s,
                                  .wall_s = is_finished ? wall_s : NAN,
                                  .is_finished = is_finished,
                                  .trace = trace_name(),
                                  .mpi = library_version()};
  program_header_json(&header, out);
}
