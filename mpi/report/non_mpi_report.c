/* The process report: what a program that never initialised MPI did with its files, written at its
 * exit if it did enough. Nothing here calls malloc or a stream: programs call exit in
 * signal handlers. It says nothing on stderr: shells and their tools have users of their own. */
#define _GNU_SOURCE
#include "base/arena.h"
#include "base/atomic_file.h"
#include "base/clock.h"
#include "base/path.h"
#include "base/reentrancy.h"
#include "record/bypass.h"
#include "record/elsewhere.h"
#include "record/failed_write.h"
#include "record/file_table.h"
#include "record/inherited.h"
#include "record/live_file.h"
#include "record/observation.h"
#include "record/program_info.h"
#include "report/process_limit.h"
#include "report/process_report.h"
#include "report/report.h"
#include "settings/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[PATH_BYTES_MAX]; /* "": no record is wanted */

static bool is_set(const char *variable) {
  const char *value = secure_getenv(variable);
  return value != NULL && value[0] != '\0';
}

/* Before the program runs. An MPI program has files too before it initialises MPI; then rank 0's
 * settings count. */
__attribute__((constructor)) static void begin(void) {
  bool wants_profile = is_set(PROFILE_VARIABLE);
  if (!wants_profile && !is_set(JSON_VARIABLE))
    return;
  if (wants_profile)
    snprintf(directory, sizeof directory, "%s", secure_getenv(PROFILE_VARIABLE));
  if (directory[0] != '/')
    directory[0] = '\0';
  if (directory[0] != '\0') {
    path_exclude(directory);
    failed_write_begin(directory);
    live_begin(directory);
    unrecorded_begin(directory);
    bypass_begin(directory);
  }
  const char *of_emulation = secure_getenv("FOREBAY_PFS_STATE");
  if (of_emulation != NULL && of_emulation[0] == '/')
    path_exclude(arena_copy(of_emulation));
  files_start();
  inherited_begin();
  files_observe(clock_s(), 1e-6 * (double)unix_us());
}

static bool is_worth_reporting(void) {
  struct process_work work = {0};
  for (int i = 0; files_at(i) != NULL; i++)
    process_work_add(&work, files_at(i));
  return process_work_is_enough(&work);
}

static void write_report(const struct text *json) {
  static char path[PATH_BYTES_MAX + 64];
  snprintf(path, sizeof path, "%s/process-%lld-%d.json", directory,
           (long long)(files_started_unix_s() * 1e3), (int)getpid());
  if (atomic_file_write(path, json))
    unrecorded_add(WRITING, (int64_t)json->length);
}

static void report_process(void) {
  double wall_s = clock_s() - files_origin_s();
  struct job *job = merge_single_process();
  struct text json = {.is_mapped = true};
  if (job == NULL)
    return;
  text_add(&json, "{");
  program_header_json(&(struct program_header){.hosts = 1,
                                               .started_unix_s = files_started_unix_s(),
                                               .is_finished = true,
                                               .ranks = 1,
                                               .wall_s = wall_s},
                      &json);
  report_members_json(job, wall_s, &json);
  text_add(&json, "}\n");
  write_report(&json);
}

static void report_if_worth_it(void) {
  bool is_of_mpi = settings.ranks > 0;
  if (directory[0] == '\0' || is_of_mpi || observation_is_lost() || !files_are_observed() ||
      getpid() != files_process() || in_critical_section())
    return;
  if (is_worth_reporting() && process_report_reserve(directory))
    report_process();
  files_stop();
  live_end();
}

void process_report_end(void) {
  report_if_worth_it();
  unrecorded_end();
}

/* At a normal end, behind the program's own functions for it. */
__attribute__((destructor)) static void end(void) { process_report_end(); }
