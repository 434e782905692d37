/* Hooks on the calls by which descriptors come and go. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "base/real_call.h"
#include "hooks/observe.h"
#include "record/descriptors.h"
#include "record/failed_write.h"
#include "record/file_table.h"
#include "record/observation.h"
#include "trace/trace.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static mode_t mode_after(int flags, va_list rest) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(rest, mode_t) : 0;
}

static double start_if_observed(void) { return files_are_observed() ? clock_s() : 0; }

static void note_opened(const struct opening *opening) {
  bool is_nameless = (opening->flags & O_TMPFILE) == O_TMPFILE || (opening->flags & O_PATH) != 0;
  if (opening->start_s > 0 && !is_nameless &&
      path_was_readable(opening->path, opening->descriptor < 0))
    observe_open(opening);
}

#define OPEN_BODY(NAME, DIRECTORY, FLAGS, MODE, ARGUMENTS)                                         \
  struct opening opening = {LAYER_POSIX,                                                           \
                            DIRECTORY,                                                             \
                            path,                                                                  \
                            -1,                                                                    \
                            __builtin_return_address(0),                                           \
                            0,                                                                     \
                            FLAGS,                                                                 \
                            MODE,                                                                  \
                            trace_size_before_open(DIRECTORY, path)};                              \
  opening.start_s = start_if_observed();                                                           \
  opening.descriptor = REAL(NAME) ARGUMENTS;                                                       \
  WITH_ERRNO_KEPT(note_opened(&opening));                                                          \
  return opening.descriptor;

#define OPEN_HOOK(NAME, DIRECTORY, PARAMETERS, ARGUMENTS)                                          \
  int NAME PARAMETERS {                                                                            \
    va_list rest;                                                                                  \
    va_start(rest, flags);                                                                         \
    mode_t mode = mode_after(flags, rest);                                                         \
    va_end(rest);                                                                                  \
    OPEN_BODY(NAME, DIRECTORY, flags, mode, ARGUMENTS)                                             \
  }

WITH_64(OPEN_HOOK, open, AT_FDCWD, (const char *path, int flags, ...), (path, flags, mode))
WITH_64(OPEN_HOOK, openat, directory, (int directory, const char *path, int flags, ...),
        (directory, path, flags, mode))

#define FIXED_OPEN_HOOK(NAME, DIRECTORY, FLAGS, MODE, PARAMETERS, ARGUMENTS)                       \
  int NAME PARAMETERS { OPEN_BODY(NAME, DIRECTORY, FLAGS, MODE, ARGUMENTS) }

#define CREAT_FLAGS (O_WRONLY | O_CREAT | O_TRUNC)
WITH_64(FIXED_OPEN_HOOK, creat, AT_FDCWD, CREAT_FLAGS, mode, (const char *path, mode_t mode),
        (path, mode))

/* What compilers make of open where there is no mode, and they look after mistakes. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int directory, const char *path, int flags);
int __openat64_2(int directory, const char *path, int flags);
FIXED_OPEN_HOOK(__open_2, AT_FDCWD, flags, 0, (const char *path, int flags), (path, flags))
FIXED_OPEN_HOOK(__open64_2, AT_FDCWD, flags, 0, (const char *path, int flags), (path, flags))
FIXED_OPEN_HOOK(__openat_2, directory, flags, 0, (int directory, const char *path, int flags),
                (directory, path, flags))
FIXED_OPEN_HOOK(__openat64_2, directory, flags, 0, (int directory, const char *path, int flags),
                (directory, path, flags))

/* The call writes the name that it has chosen into the path. */
#define TEMPORARY (O_RDWR | O_CREAT | O_EXCL)
WITH_64(FIXED_OPEN_HOOK, mkstemp, AT_FDCWD, TEMPORARY, 0600, (char *path), (path))
WITH_64(FIXED_OPEN_HOOK, mkostemp, AT_FDCWD, TEMPORARY | flags, 0600, (char *path, int flags),
        (path, flags))
WITH_64(FIXED_OPEN_HOOK, mkstemps, AT_FDCWD, TEMPORARY, 0600, (char *path, int suffix_bytes),
        (path, suffix_bytes))
WITH_64(FIXED_OPEN_HOOK, mkostemps, AT_FDCWD, TEMPORARY | flags, 0600,
        (char *path, int suffix_bytes, int flags), (path, suffix_bytes, flags))

int close(int descriptor) {
  struct file *file = observe_close(descriptor);
  if (file == NULL)
    return REAL(close)(descriptor);
  double start_s = clock_s();
  int code = REAL(close)(descriptor);
  if (code != 0)
    WITH_ERRNO_KEPT(failed_write_note(file, "close", errno));
  WITH_ERRNO_KEPT(observe_closed(file, start_s, clock_s()));
  return code;
}

static void forget_from(unsigned first, unsigned last) {
  for (int at = descriptors_highest(); at >= 0 && (unsigned)at >= first; at--)
    if ((unsigned)at <= last) {
      double now_s = clock_s();
      observe_closed(observe_close(at), now_s, now_s);
    }
}

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif
int close_range(unsigned first, unsigned last, int flags);
void closefrom(int first);

int close_range(unsigned first, unsigned last, int flags) {
  if (((unsigned)flags & CLOSE_RANGE_CLOEXEC) == 0)
    forget_from(first, last);
  return REAL(close_range)(first, last, flags);
}

void closefrom(int first) {
  forget_from(first > 0 ? (unsigned)first : 0, ~0u);
  REAL(closefrom)(first);
}

#define DUPLICATE_HOOK(NAME, PARAMETERS, ARGUMENTS)                                                \
  int NAME PARAMETERS {                                                                            \
    int copy = REAL(NAME) ARGUMENTS;                                                               \
    WITH_ERRNO_KEPT(observe_duplicate(descriptor, copy));                                          \
    return copy;                                                                                   \
  }

DUPLICATE_HOOK(dup, (int descriptor), (descriptor))
DUPLICATE_HOOK(dup2, (int descriptor, int as), (descriptor, as))
DUPLICATE_HOOK(dup3, (int descriptor, int as, int flags), (descriptor, as, flags))
