#include "record/process_identity.h"

#include "base/atomic_file.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { STATE_FIELD = 3, PARENT_FIELD = 4, START_FIELD = 22, STAT_BYTES_MAX = 1024 }; /* proc(5) */

/* 0: there is none. The program's name, in brackets, may have any character: the last bracket ends
 * it. */
static unsigned long long number_of(int pid, int wanted, bool *has_ended) {
  char path[64], text[STAT_BYTES_MAX];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  ssize_t length = file_read(path, text, sizeof text - 1);
  text[length > 0 ? length : 0] = '\0';
  const char *at = strrchr(text, ')');
  if (at == NULL || strspn(at, ") ") < 2)
    return 0;
  *has_ended = strchr("ZX", at[2]) != NULL;
  for (int field = STATE_FIELD - 1; at != NULL && field < wanted; field++)
    at = strchr(at + 1, ' ');
  unsigned long long number = 0;
  return at != NULL && sscanf(at, " %llu", &number) == 1 ? number : 0;
}

uint64_t start_ticks_of(int pid) {
  bool has_ended = false;
  uint64_t ticks = number_of(pid, START_FIELD, &has_ended);
  return has_ended ? 0 : ticks;
}

int parent_of(int pid) {
  bool has_ended;
  return (int)number_of(pid, PARENT_FIELD, &has_ended);
}

uint64_t pid_namespace(void) {
  struct stat status;
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}
