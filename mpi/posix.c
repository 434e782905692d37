/* Hooks below MPI-IO: the system calls that ROMIO and ompio make on their files. Each hook passes
 * the call on and returns what it returned, with errno as the call left it. */
#define _GNU_SOURCE
#include "clock.h"
#include "next.h"
#include "observe.h"
#include "trace.h"

#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/uio.h>
#include <unistd.h>

/* Runs the statement with errno kept as the call before it has left it. */
#define WITH_ERRNO_KEPT(statement)                                                                 \
  do {                                                                                             \
    int kept = errno;                                                                              \
    statement;                                                                                     \
    errno = kept;                                                                                  \
  } while (0)

/* Where the call that just moved so many bytes by the descriptor's own position began. */
static off_t began(int descriptor, ssize_t moved) {
  off_t now = NEXT(lseek)(descriptor, 0, SEEK_CUR);
  return now - (moved > 0 ? moved : 0);
}

static struct transfer what(enum direction direction, off_t offset, size_t asked, ssize_t moved) {
  return (struct transfer){direction, offset, asked, moved};
}

#define DATA_HOOK(NAME, DIRECTION, PARAMETERS, ARGUMENTS, ASKED, OFFSET)                           \
  ssize_t NAME PARAMETERS {                                                                        \
    struct file *file = descriptors_find(descriptor);                                              \
    if (file == NULL)                                                                              \
      return NEXT(NAME) ARGUMENTS;                                                                 \
    double start_s = clock_s();                                                                    \
    ssize_t moved = NEXT(NAME) ARGUMENTS;                                                          \
    WITH_ERRNO_KEPT(double elapsed_s = clock_s() - start_s;                                        \
                    struct transfer transfer = what(DIRECTION, OFFSET, ASKED, moved);              \
                    observe_data(file, transfer, elapsed_s));                                      \
    return moved;                                                                                  \
  }

DATA_HOOK(read, READING, (int descriptor, void *buffer, size_t length),
          (descriptor, buffer, length), length, began(descriptor, moved))
DATA_HOOK(write, WRITING, (int descriptor, const void *buffer, size_t length),
          (descriptor, buffer, length), length, began(descriptor, moved))
DATA_HOOK(readv, READING, (int descriptor, const struct iovec *vector, int count),
          (descriptor, vector, count), 0, began(descriptor, moved))
DATA_HOOK(writev, WRITING, (int descriptor, const struct iovec *vector, int count),
          (descriptor, vector, count), 0, began(descriptor, moved))

#define PREAD_HOOK(NAME, OFFSET_TYPE)                                                              \
  DATA_HOOK(NAME, READING, (int descriptor, void *buffer, size_t length, OFFSET_TYPE offset),      \
            (descriptor, buffer, length, offset), length, offset)
#define PWRITE_HOOK(NAME, OFFSET_TYPE)                                                             \
  DATA_HOOK(NAME, WRITING,                                                                         \
            (int descriptor, const void *buffer, size_t length, OFFSET_TYPE offset),               \
            (descriptor, buffer, length, offset), length, offset)
#define VECTOR_HOOK(NAME, DIRECTION, OFFSET_TYPE)                                                  \
  DATA_HOOK(NAME, DIRECTION,                                                                       \
            (int descriptor, const struct iovec *vector, int count, OFFSET_TYPE offset),           \
            (descriptor, vector, count, offset), 0, offset)

PREAD_HOOK(pread, off_t)
PREAD_HOOK(pread64, off64_t)
PWRITE_HOOK(pwrite, off_t)
PWRITE_HOOK(pwrite64, off64_t)
VECTOR_HOOK(preadv, READING, off_t)
VECTOR_HOOK(preadv64, READING, off64_t)
VECTOR_HOOK(pwritev, WRITING, off_t)
VECTOR_HOOK(pwritev64, WRITING, off64_t)

/* An asynchronous call is counted when it is given to libc, as if all of it were moved, and takes
 * no time: libc makes the system call in a thread of its own. */
#define AIO_HOOK(NAME, BLOCK, DIRECTION)                                                           \
  int NAME(struct BLOCK *block) {                                                                  \
    struct file *file = descriptors_find(block->aio_fildes);                                       \
    int code = NEXT(NAME)(block);                                                                  \
    if (file != NULL && code == 0)                                                                 \
      observe_data(file, what(DIRECTION, block->aio_offset, 0, (ssize_t)block->aio_nbytes), 0);    \
    return code;                                                                                   \
  }

AIO_HOOK(aio_read, aiocb, READING)
AIO_HOOK(aio_read64, aiocb64, READING)
AIO_HOOK(aio_write, aiocb, WRITING)
AIO_HOOK(aio_write64, aiocb64, WRITING)

#define OTHER_HOOK(RESULT, NAME, WHAT, ARGUMENT, PARAMETERS, ARGUMENTS)                            \
  RESULT NAME PARAMETERS {                                                                         \
    struct file *file = descriptors_find(descriptor);                                              \
    if (file == NULL)                                                                              \
      return NEXT(NAME) ARGUMENTS;                                                                 \
    double start_s = clock_s();                                                                    \
    RESULT result = NEXT(NAME) ARGUMENTS;                                                          \
    WITH_ERRNO_KEPT(observe_other(file, WHAT, clock_s() - start_s);                                \
                    trace_system_other(file, TRACE_SYSTEM_##WHAT, ARGUMENT, clock_s() - start_s)); \
    return result;                                                                                 \
  }

OTHER_HOOK(off_t, lseek, SEEK, result, (int descriptor, off_t offset, int whence),
           (descriptor, offset, whence))
OTHER_HOOK(off64_t, lseek64, SEEK, result, (int descriptor, off64_t offset, int whence),
           (descriptor, offset, whence))
OTHER_HOOK(int, fsync, SYNC, 0, (int descriptor), (descriptor))
OTHER_HOOK(int, fdatasync, SYNC, 0, (int descriptor), (descriptor))
OTHER_HOOK(int, ftruncate, TRUNCATION, length, (int descriptor, off_t length), (descriptor, length))
OTHER_HOOK(int, ftruncate64, TRUNCATION, length, (int descriptor, off64_t length),
           (descriptor, length))

/* fcntl's argument is absent, an int or a pointer. Read as a pointer it is passed on unchanged on
 * the systems whose calling convention passes variable arguments like named ones (x86-64, aarch64).
 */
#define FCNTL_HOOK(NAME)                                                                           \
  int NAME(int descriptor, int command, ...) {                                                     \
    va_list rest;                                                                                  \
    va_start(rest, command);                                                                       \
    void *argument = va_arg(rest, void *);                                                         \
    va_end(rest);                                                                                  \
    bool locks = command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK ||            \
                 command == F_OFD_SETLKW;                                                          \
    struct file *file = locks ? descriptors_find(descriptor) : NULL;                               \
    if (file == NULL)                                                                              \
      return NEXT(NAME)(descriptor, command, argument);                                            \
    double start_s = clock_s();                                                                    \
    int result = NEXT(NAME)(descriptor, command, argument);                                        \
    WITH_ERRNO_KEPT(observe_other(file, LOCK, clock_s() - start_s);                                \
                    trace_system_other(file, TRACE_SYSTEM_LOCK, command, clock_s() - start_s));    \
    return result;                                                                                 \
  }

FCNTL_HOOK(fcntl)
FCNTL_HOOK(fcntl64)

static mode_t mode_after(int flags, va_list rest) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(rest, mode_t) : 0;
}

#define OPEN_HOOK(NAME, DIRECTORY, PARAMETERS, ARGUMENTS)                                          \
  int NAME PARAMETERS {                                                                            \
    va_list rest;                                                                                  \
    va_start(rest, flags);                                                                         \
    mode_t mode = mode_after(flags, rest);                                                         \
    va_end(rest);                                                                                  \
    struct trace_before before = trace_before_open(DIRECTORY, path);                               \
    int descriptor = NEXT(NAME) ARGUMENTS;                                                         \
    WITH_ERRNO_KEPT(observe_open(path, descriptor, __builtin_return_address(0));                   \
                    trace_system_open(descriptors_find(descriptor), before, flags, (int)mode));    \
    return descriptor;                                                                             \
  }

OPEN_HOOK(open, AT_FDCWD, (const char *path, int flags, ...), (path, flags, mode))
OPEN_HOOK(open64, AT_FDCWD, (const char *path, int flags, ...), (path, flags, mode))
OPEN_HOOK(openat, directory, (int directory, const char *path, int flags, ...),
          (directory, path, flags, mode))
OPEN_HOOK(openat64, directory, (int directory, const char *path, int flags, ...),
          (directory, path, flags, mode))

int close(int descriptor) {
  struct file *file = trace_is_on ? descriptors_find(descriptor) : NULL;
  double start_s = file != NULL ? clock_s() : 0;
  observe_close(descriptor);
  int code = NEXT(close)(descriptor);
  if (file != NULL)
    WITH_ERRNO_KEPT(trace_system_other(file, TRACE_SYSTEM_CLOSE, 0, clock_s() - start_s));
  return code;
}
