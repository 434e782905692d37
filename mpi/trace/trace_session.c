/* The life of the trace in one process. */
#define _GNU_SOURCE
#include "trace/trace.h"

#include "base/clock.h"
#include "base/library.h"
#include "base/message.h"
#include "settings/settings.h"
#include "trace/trace_file.h"
#include "trace/trace_record.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { TRACE_BYTES_MAX_DEFAULT = 64 << 20 };

/* What the user asked for; rank 0 sends it to the others. */
static struct request {
  char directory[PATH_MAX]; /* "": no trace */
  bool is_in_record;        /* the directory is one of the job's record */
  int64_t bytes_max;
} request;

static const char *value_of(const char *variable) {
  const char *value = getenv(variable);
  return value != NULL && value[0] != '\0' && strcmp(value, "0") != 0 ? value : NULL;
}

static int64_t requested_limit(void) {
  const char *value = value_of(TRACE_BYTES_MAX_VARIABLE);
  char *end;
  long long bytes = value != NULL ? strtoll(value, &end, 10) : TRACE_BYTES_MAX_DEFAULT;
  if (value == NULL || (*end == '\0' && bytes >= TRACE_BYTES_MIN))
    return bytes;
  message_print("%s: '%s' is no number of bytes of at least %d; %d is used",
                TRACE_BYTES_MAX_VARIABLE, value, TRACE_BYTES_MIN, TRACE_BYTES_MAX_DEFAULT);
  return TRACE_BYTES_MAX_DEFAULT;
}

/* "1" means a directory of the job's record. */
static void choose_directory(const char *value) {
  request.is_in_record = strcmp(value, "1") == 0;
  if (!request.is_in_record) {
    settings_path_of(TRACE_VARIABLE, request.directory);
    return;
  }
  if (!settings.wants_profile)
    message_print("no trace is written: %s=1 requests one in the record of a job, but %s names no "
                  "record\nhint: %s=DIR writes it to the directory DIR",
                  TRACE_VARIABLE, PROFILE_VARIABLE, TRACE_VARIABLE);
  else if (snprintf(request.directory, sizeof request.directory, "%s/trace-%s",
                    settings.profile_directory, settings.step_id) >= (int)sizeof request.directory)
    request.directory[0] =
        '\0'; /* the path of the step is too long as well, and has its own message */
}

bool trace_share(void) {
  const char *value = settings.rank == 0 ? value_of(TRACE_VARIABLE) : NULL;
  if (value != NULL) {
    request.bytes_max = requested_limit();
    choose_directory(value);
  }
  library.Bcast(&request, sizeof request, library.byte, 0, library.world);
  return request.directory[0] != '\0';
}

const char *trace_name(void) {
  return request.is_in_record && request.directory[0] != '\0' ? strrchr(request.directory, '/') + 1
                                                              : NULL;
}

static size_t put_string(uint8_t *to, const char *text) {
  size_t length = strlen(text), head = trace_put(to, length);
  memcpy(to + head, text, length);
  return head + length;
}

static void add_header(void) {
  uint8_t record[PATH_MAX + 1024];
  char program[PATH_MAX] = "", host[256] = "";
  struct timespec now;
  long long started_unix_ms = 0, pid = 0;
  sscanf(settings.step_id, "%lld-%lld", &started_unix_ms, &pid);
  clock_gettime(CLOCK_REALTIME, &now);
  if (readlink("/proc/self/exe", program, sizeof program - 1) < 0)
    program[0] = '\0';
  gethostname(host, sizeof host - 1);
  size_t length = 0;
  record[length++] = TRACE_HEADER;
  const uint64_t numbers[] = {TRACE_VERSION,
                              (uint64_t)started_unix_ms,
                              (uint64_t)pid,
                              (uint64_t)settings.rank,
                              (uint64_t)settings.ranks,
                              (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec,
                              TRACE_TICK_NS};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    length += trace_put(record + length, numbers[i]);
  length += put_string(record + length, library_version());
  length += put_string(record + length, program);
  length += put_string(record + length, host);
  trace_file_add(record, length, 0);
  trace_file_flush();
}

static void warn_trace_failed(const char *path, int code) {
  message_print("%s: rank %d's trace cannot be made: %s\nhint: set %s to a directory that can be "
                "written on every node",
                path, settings.rank, strerror(code), TRACE_VARIABLE);
}

/* The child shares the file but not the lock's owner. */
static void in_child(void) { trace_is_on = false; }

void trace_start(bool was_spawned) {
  char name[64], *path = NULL;
  if (request.directory[0] == '\0' || (was_spawned && !request.is_in_record))
    return;
  snprintf(name, sizeof name, TRACE_FILE_NAME, settings.rank);
  mkdir(request.directory, 0777); /* another rank may have made it; else the file fails */
  if (asprintf(&path, "%s/%s", request.directory, name) < 0 || !trace_definitions_bind() ||
      !trace_file_make(path, request.bytes_max)) {
    warn_trace_failed(path != NULL ? path : request.directory, trace_file_stopped());
    return;
  }
  trace_begin_clock(clock_s());
  add_header();
  pthread_atfork(NULL, NULL, in_child);
  trace_is_on = true;
  trace_system_open_already();
}

static void add_trailer(enum trace_end end) {
  uint8_t record[TRACE_TRAILER_BYTES_MAX];
  size_t length = 0;
  record[length++] = TRACE_TRAILER;
  struct trace_losses lost = trace_losses();
  const int64_t numbers[] = {end, trace_calls_ended, lost.calls, lost.system_calls,
                             trace_file_stopped()};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    length += trace_put(record + length, trace_fold(numbers[i]));
  trace_file_end(record, length);
}

struct loss {
  struct trace_losses lost;
  int stopped;
};

static const char *loss_reason(int stopped) {
  if (stopped == 0)
    return "calls that cannot be described, or made in a signal handler";
  return stopped < 0 ? "the limit of " TRACE_BYTES_MAX_VARIABLE : strerror(stopped);
}

static void warn_lost_calls(const struct loss *loss, int ranks) {
  message_print("%s: the trace lacks %lld call(s) to MPI-IO or of the program and %lld system "
                "call(s) below, on %d rank(s): %s%s",
                request.directory, (long long)loss->lost.calls, (long long)loss->lost.system_calls,
                ranks, loss_reason(loss->stopped),
                loss->stopped < 0 ? "\nhint: set it to more bytes for each rank" : "");
}

/* Each rank sends rank 0 what it has lost, on a communicator of our own. */
static void report_losses(void) {
  MPI_Comm comm;
  struct loss own = {trace_losses(), trace_file_stopped()}, other;
  library.Comm_split(library.world, 0, settings.rank, &comm);
  int ranks = own.lost.calls + own.lost.system_calls > 0;
  if (settings.rank > 0)
    library.Send(&own, sizeof own, library.byte, 0, 0, comm);
  for (int rank = 1; settings.rank == 0 && rank < settings.ranks; rank++) {
    library.Recv(&other, sizeof other, library.byte, rank, 0, comm, MPI_STATUS_IGNORE);
    ranks += other.lost.calls + other.lost.system_calls > 0;
    own.lost.calls += other.lost.calls;
    own.lost.system_calls += other.lost.system_calls;
    own.stopped = other.stopped != 0 ? other.stopped : own.stopped;
  }
  if (settings.rank == 0 && ranks > 0)
    warn_lost_calls(&own, ranks);
  library.Comm_free(&comm);
}

void trace_stop(enum trace_end end) {
  bool was_on = trace_is_on;
  trace_is_on = false;
  if (was_on && trace_enter()) {
    add_trailer(end);
    trace_leave();
  }
  if (end == TRACE_FINALIZED && request.directory[0] != '\0')
    report_losses();
}
