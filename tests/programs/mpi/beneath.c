/* A preload of the user's own, below MPI-IO: counts writes with an offset, and says so at the end.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

static int calls;

#define COUNTED(NAME, PARAMETERS, ARGUMENTS)                                                       \
  ssize_t NAME PARAMETERS {                                                                        \
    ssize_t(*next) PARAMETERS;                                                                     \
    *(void **)&next = dlsym(RTLD_NEXT, #NAME);                                                     \
    calls++;                                                                                       \
    return next ARGUMENTS;                                                                         \
  }

COUNTED(pwrite, (int descriptor, const void *bytes, size_t length, off_t offset),
        (descriptor, bytes, length, offset))
COUNTED(pwrite64, (int descriptor, const void *bytes, size_t length, off64_t offset),
        (descriptor, bytes, length, offset))
COUNTED(pwritev, (int descriptor, const struct iovec *vector, int count, off_t offset),
        (descriptor, vector, count, offset))
COUNTED(pwritev64, (int descriptor, const struct iovec *vector, int count, off64_t offset),
        (descriptor, vector, count, offset))

__attribute__((destructor)) static void say(void) {
  if (calls > 0)
    fprintf(stderr, "beneath: %d writes\n", calls);
}
