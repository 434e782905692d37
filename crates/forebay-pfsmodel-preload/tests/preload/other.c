/* Another preload library: passes write, pread and open on, and says at the end what it saw. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int seen;

ssize_t write(int fd, const void *buffer, size_t length) {
  ssize_t (*next)(int, const void *, size_t) =
      (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
  seen++;
  return next(fd, buffer, length);
}

ssize_t pread(int fd, void *buffer, size_t length, off_t offset) {
  ssize_t (*next)(int, void *, size_t, off_t) =
      (ssize_t(*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, "pread");
  seen++;
  return next(fd, buffer, length, offset);
}

__attribute__((destructor)) static void say(void) { dprintf(2, "other saw %d calls\n", seen); }
