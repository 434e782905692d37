#include "record/process_identity.h"

#include "base/atomic_file.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { STATE_FIELD = 3, START_FIELD = 22, STAT_BYTES_MAX = 1024 }; /* proc(5) */

/* The program's name, in brackets, may have any character: the last bracket ends it. */
uint64_t start_ticks_of(int pid) {
  char path[64], text[STAT_BYTES_MAX];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  ssize_t length = file_read(path, text, sizeof text - 1);
  text[length > 0 ? length : 0] = '\0';
  const char *at = strrchr(text, ')');
  if (at == NULL || strspn(at, ") ") < 2 || strchr("ZX", at[2]) != NULL)
    return 0;
  for (int field = STATE_FIELD - 1; at != NULL && field < START_FIELD; field++)
    at = strchr(at + 1, ' ');
  unsigned long long ticks = 0;
  return at != NULL && sscanf(at, " %llu", &ticks) == 1 ? ticks : 0;
}

uint64_t pid_namespace(void) {
  struct stat status;
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}
