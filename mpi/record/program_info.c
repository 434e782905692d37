/* Which program a report is about: its path, arguments, host and times. Assumes /proc. Never calls
 * malloc: a program can exit in a signal handler. */
#define _GNU_SOURCE
#include "record/program_info.h"

#include "base/atomic_file.h"
#include "base/json.h"
#include "base/path.h"

#include <string.h>
#include <unistd.h>

enum {
  REPORT_FORMAT = 2,           /* "forebay_mpi": docs/explanation/profiles.md */
  ARGUMENTS_BYTES_MAX = 16384, /* of the command line; what is longer is cut */
};

static void add_executable(struct text *out) {
  static char path[PATH_BYTES_MAX];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  path[length > 0 ? length : 0] = '\0';
  add_string(out, "program", path);
}

static void add_arguments(struct text *out) {
  static char words[ARGUMENTS_BYTES_MAX];
  ssize_t length = file_read("/proc/self/cmdline", words, sizeof words - 1);
  words[length > 0 ? length : 0] = '\0';
  add_name(out, "arguments");
  text_add(out, "[");
  for (ssize_t at = (ssize_t)strlen(words) + 1; at < length;
       at += (ssize_t)strlen(words + at) + 1) {
    separate(out);
    text_add_json_string(out, words + at);
  }
  text_add(out, "]");
}

void program_header_json(const struct program_header *header, struct text *out) {
  char host[HOST_BYTES_MAX] = "";
  gethostname(host, sizeof host - 1);
  add_integer(out, "forebay_mpi", REPORT_FORMAT);
  add_executable(out);
  add_arguments(out);
  add_string(out, "host", host);
  add_integer(out, "hosts", header->hosts);
  add_integer(out, "pid", getpid());
  add_seconds(out, "started_unix_s", header->started_unix_s);
  add_name(out, "finished");
  text_add(out, header->is_finished ? "true" : "false");
  add_string(out, "trace", header->trace);
  add_string(out, "mpi", header->mpi);
  add_integer(out, "ranks", header->ranks);
  add_seconds(out, "wall_s", header->wall_s);
}
