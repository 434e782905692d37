#define _GNU_SOURCE
#include "raw_open.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

int raw_open(const char *path, int flags) {
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0666);
}
