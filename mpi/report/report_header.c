#define _GNU_SOURCE
#include "report/report_header.h"

#include "base/json.h"
#include "base/library.h"
#include "report/program_info.h"
#include "settings/settings.h"
#include "trace/trace.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { HOST_BYTES_MAX = 256 };

static int hosts;

static uint64_t hash_of_host(void) {
  char name[HOST_BYTES_MAX] = "";
  gethostname(name, sizeof name - 1);
  uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
  for (const char *at = name; *at != '\0'; at++)
    hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
  return hash;
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

static void add_host(struct text *out) {
  char name[HOST_BYTES_MAX] = "";
  gethostname(name, sizeof name - 1);
  add_string(out, "host", name);
  add_integer(out, "hosts", hosts);
  add_integer(out, "pid", getpid());
}

static void add_trace(struct text *out) {
  const char *name = trace_name();
  add_name(out, "trace");
  if (name != NULL)
    text_add_json_string(out, name);
  else
    text_add(out, "null");
}

void report_header_json(double wall_s, struct text *out) {
  bool is_finished = wall_s >= 0;
  add_integer(out, "forebay_mpi", REPORT_FORMAT);
  program_info_json(out);
  add_host(out);
  add_seconds(out, "started_unix_s", settings.started_unix_s);
  add_name(out, "finished");
  text_add(out, is_finished ? "true" : "false");
  add_trace(out);
  add_string(out, "mpi", library_version());
  add_integer(out, "ranks", settings.ranks);
  add_seconds(out, "wall_s", is_finished ? wall_s : NAN);
}
