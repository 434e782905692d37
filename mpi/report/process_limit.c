#define _GNU_SOURCE
#include "report/process_limit.h"

#include "base/path.h"
#include "base/real_call.h"
#include "record/single_byte_io.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
  REPORTS_MAX = 64, /* in one record */
  REPORTED_CALLS_MIN = 1000,
  REPORTED_BYTES_MIN = 1 << 20,
};

void process_work_add(struct process_work *work, struct file *file) {
  const struct counters *counters = &file->tally->counters;
  pending_flush(file);
  work->bytes += counters->mapped_bytes;
  work->calls += counters->opens + counters->open_failures + counters_metadata_calls(counters);
  for (int direction = 0; direction < DIRECTIONS; direction++) {
    work->calls += counters->traffic[direction].system_calls;
    work->bytes += counters->traffic[direction].system_bytes;
  }
}

bool process_work_is_enough(const struct process_work *work) {
  return work->calls >= REPORTED_CALLS_MIN || work->bytes >= REPORTED_BYTES_MIN;
}

bool process_report_reserve(const char *directory) {
  static char path[PATH_BYTES_MAX + 32];
  struct stat status;
  snprintf(path, sizeof path, "%s/processes", directory);
  int descriptor = REAL(open)(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor < 0)
    return false;
  bool is_counted = REAL(write)(descriptor, ".", 1) == 1 && fstat(descriptor, &status) == 0;
  REAL(close)(descriptor);
  return is_counted && status.st_size <= REPORTS_MAX;
}
