#define _GNU_SOURCE
#include "report/step.h"

#include "base/json.h"
#include "base/library.h"
#include "base/message.h"
#include "report/process.h"
#include "report/report.h"
#include "settings/settings.h"
#include "trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
  HOST_BYTES_MAX = 256,
  UNFINISHED_BYTES_MAX = 131072, /* all of it with every byte escaped */
  STEP_PATH_BYTES_MAX = PATH_MAX + 128,
};

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

static void count_hosts(void) {
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

void step_header_json(double wall_s, struct text *out) {
  bool is_finished = wall_s >= 0;
  add_integer(out, "forebay_mpi", REPORT_FORMAT);
  process_program_json(out);
  add_host(out);
  add_seconds(out, "started_unix_s", settings.started_unix_s);
  add_name(out, "finished");
  text_add(out, is_finished ? "true" : "false");
  add_trace(out);
  add_string(out, "mpi", library_version());
  add_integer(out, "ranks", settings.ranks);
  add_seconds(out, "wall_s", is_finished ? wall_s : NAN);
}

static void name_step(char path[STEP_PATH_BYTES_MAX]) {
  snprintf(path, STEP_PATH_BYTES_MAX, "%s/step-%s.json", settings.profile_directory,
           settings.step_id);
}

/* Says it once: a directory that is gone or full at the begin mostly is so at the end. */
static void place(const struct text *json) {
  static bool is_said;
  char path[STEP_PATH_BYTES_MAX];
  name_step(path);
  if (report_place(path, json) || is_said)
    return;
  is_said = true;
  message_print("%s: the record of this program could not be written: %s\n"
                "hint: the job itself goes on unharmed; %s names the directory",
                path, strerror(errno), PROFILE_VARIABLE);
}

void step_begin(void) {
  if (!settings.wants_profile && !settings.wants_json)
    return;
  count_hosts();
  if (settings.rank != 0 || !settings.wants_profile)
    return;
  struct text json = {0};
  text_add(&json, "{");
  step_header_json(-1, &json);
  text_add(&json, ",\"files_dropped\":0,\"files\":[]}\n");
  place(&json);
  text_clear(&json);
}

void step_end(const struct text *json) { place(json); }

static ssize_t read_all(const char *path, char *bytes, size_t room) {
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return -1;
  ssize_t length = read(descriptor, bytes, room);
  close(descriptor);
  return length;
}

static bool write_all(const char *path, const char *bytes, size_t length) {
  int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0)
    return false;
  bool good = write(descriptor, bytes, length) == (ssize_t)length;
  return close(descriptor) == 0 && good;
}

/* Any rank may be the one that aborts. What it finds is an object, and it adds a member in front;
 * if several abort at once, one of them is noted. */
void step_note_abort(int code) {
  static char json[UNFINISHED_BYTES_MAX];
  char path[STEP_PATH_BYTES_MAX], beside[STEP_PATH_BYTES_MAX];
  size_t head = (size_t)snprintf(json, sizeof json, "{\"aborted\":{\"rank\":%d,\"code\":%d}",
                                 settings.rank, code);
  name_step(path);
  snprintf(beside, sizeof beside, "%s/step-%s.aborted-%d", settings.profile_directory,
           settings.step_id, settings.rank);
  char *found = json + head;
  ssize_t length = read_all(path, found, sizeof json - head);
  if (length < 2 || found[0] != '{' || found[length - 1] != '\n')
    return; /* not there, or not whole: then it says no more than that it did not finish */
  found[0] = ',';
  if (write_all(beside, json, head + (size_t)length))
    rename(beside, path);
  else
    unlink(beside);
}
