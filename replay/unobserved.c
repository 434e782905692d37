#define _GNU_SOURCE
#include "unobserved.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

int open_unobserved(const char *path, int flags) {
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0666);
}
