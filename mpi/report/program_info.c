#define _GNU_SOURCE
#include "report/program_info.h"

#include "base/json.h"
#include "base/path.h"
#include "base/real_call.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { ARGUMENTS_BYTES_MAX = 16384 }; /* of the command line; what is longer is cut */

static void add_executable(struct text *out) {
  static char path[PATH_BYTES_MAX];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  path[length > 0 ? length : 0] = '\0';
  add_string(out, "program", path);
}

static size_t read_words(char *words, size_t room) {
  int descriptor = REAL(open)("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return 0;
  ssize_t length = REAL(read)(descriptor, words, room);
  REAL(close)(descriptor);
  return length > 0 ? (size_t)length : 0;
}

void program_info_json(struct text *out) {
  static char words[ARGUMENTS_BYTES_MAX];
  size_t length = read_words(words, sizeof words - 1);
  words[length] = '\0';
  add_executable(out);
  add_name(out, "arguments");
  text_add(out, "[");
  for (size_t at = strlen(words) + 1; at < length; at += strlen(words + at) + 1) {
    separate(out);
    text_add_json_string(out, words + at);
  }
  text_add(out, "]");
}
