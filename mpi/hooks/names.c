/* Hooks on the calls that name a file or a directory by its path, and on those that read
 * directories. Each passes the call on and returns what it returned, with errno as the call left
 * it. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "base/path.h"
#include "base/real_call.h"
#include "hooks/observe.h"
#include "record/descriptors.h"
#include "record/observation.h"
#include "record/positions.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#define NAME_HOOK(RESULT, FAILED, NAME, WHAT, ARGUMENT, DIRECTORY, PARAMETERS, ARGUMENTS)          \
  RESULT NAME PARAMETERS {                                                                         \
    double start_s = files_are_observed() ? clock_s() : 0;                                         \
    RESULT result = REAL(NAME) ARGUMENTS;                                                          \
    if (start_s > 0 && path_was_readable(path, result == FAILED))                                  \
      WITH_ERRNO_KEPT(observe_path(DIRECTORY, path, WHAT, ARGUMENT, __builtin_return_address(0),   \
                                   clock_s() - start_s));                                          \
    return result;                                                                                 \
  }

#define PATH_HOOK(NAME, WHAT, ARGUMENT, DIRECTORY, PARAMETERS, ARGUMENTS)                          \
  NAME_HOOK(int, -1, NAME, WHAT, ARGUMENT, DIRECTORY, PARAMETERS, ARGUMENTS)

/* The path alone, or with one more argument, from the current directory; or from a directory. */
#define HERE_HOOK(NAME, WHAT) PATH_HOOK(NAME, WHAT, 0, AT_FDCWD, (const char *path), (path))
#define HERE_WITH_HOOK(NAME, WHAT, TYPE)                                                           \
  PATH_HOOK(NAME, WHAT, 0, AT_FDCWD, (const char *path, TYPE more), (path, more))
#define THERE_HOOK(NAME, WHAT, TYPE)                                                               \
  PATH_HOOK(NAME, WHAT, 0, directory, (int directory, const char *path, TYPE more),                \
            (directory, path, more))
#define THERE_WITH_HOOK(NAME, WHAT, TYPE)                                                          \
  PATH_HOOK(NAME, WHAT, 0, directory, (int directory, const char *path, TYPE more, int flags),     \
            (directory, path, more, flags))

WITH_64(PATH_HOOK, truncate, TRUNCATION, length, AT_FDCWD, (const char *path, off_t length),
        (path, length))
PATH_HOOK(statx, STAT, 0, directory,
          (int directory, const char *path, int flags, unsigned mask, struct statx *status),
          (directory, path, flags, mask, status))
#if __GLIBC_PREREQ(2, 33)
HERE_WITH_HOOK(stat, STAT, struct stat *)
HERE_WITH_HOOK(stat64, STAT, struct stat64 *)
HERE_WITH_HOOK(lstat, STAT, struct stat *)
HERE_WITH_HOOK(lstat64, STAT, struct stat64 *)
THERE_WITH_HOOK(fstatat, STAT, struct stat *)
THERE_WITH_HOOK(fstatat64, STAT, struct stat64 *)
#endif

HERE_WITH_HOOK(access, ACCESS, int)
THERE_WITH_HOOK(faccessat, ACCESS, int)
HERE_HOOK(unlink, UNLINK)
HERE_HOOK(remove, UNLINK)
PATH_HOOK(unlinkat, (flags & AT_REMOVEDIR) != 0 ? RMDIR : UNLINK, 0, directory,
          (int directory, const char *path, int flags), (directory, path, flags))
HERE_HOOK(rmdir, RMDIR)
HERE_WITH_HOOK(mkdir, MKDIR, mode_t)
THERE_HOOK(mkdirat, MKDIR, mode_t)

/* Of two names the first counts, which is there before the call. */
HERE_WITH_HOOK(rename, RENAME, const char *)
PATH_HOOK(renameat, RENAME, 0, directory,
          (int directory, const char *path, int other, const char *to),
          (directory, path, other, to))
PATH_HOOK(renameat2, RENAME, 0, directory,
          (int directory, const char *path, int other, const char *to, unsigned flags),
          (directory, path, other, to, flags))
HERE_WITH_HOOK(link, LINK, const char *)
PATH_HOOK(linkat, LINK, 0, directory,
          (int directory, const char *path, int other, const char *to, int flags),
          (directory, path, other, to, flags))

/* What a symbolic link contains may be no path. */
PATH_HOOK(symlink, LINK, 0, AT_FDCWD, (const char *content, const char *path), (content, path))
PATH_HOOK(symlinkat, LINK, 0, directory, (const char *content, int directory, const char *path),
          (content, directory, path))

HERE_WITH_HOOK(chmod, ATTRIBUTES, mode_t)
THERE_WITH_HOOK(fchmodat, ATTRIBUTES, mode_t)
PATH_HOOK(chown, ATTRIBUTES, 0, AT_FDCWD, (const char *path, uid_t user, gid_t group),
          (path, user, group))
PATH_HOOK(lchown, ATTRIBUTES, 0, AT_FDCWD, (const char *path, uid_t user, gid_t group),
          (path, user, group))
PATH_HOOK(fchownat, ATTRIBUTES, 0, directory,
          (int directory, const char *path, uid_t user, gid_t group, int flags),
          (directory, path, user, group, flags))
PATH_HOOK(utimes, ATTRIBUTES, 0, AT_FDCWD, (const char *path, const struct timeval times[2]),
          (path, times))
PATH_HOOK(utimensat, ATTRIBUTES, 0, directory,
          (int directory, const char *path, const struct timespec times[2], int flags),
          (directory, path, times, flags))

/* Of each descriptor, whether it was opened to read a directory that is observed. Descriptors come
 * from opendir and fdopendir alone here, and each sets it. */
static uint64_t listed[DESCRIPTORS_MAX / 64]; /* atomic */

static void set_listed(int descriptor, bool is_observed) {
  if (descriptor < 0 || descriptor >= DESCRIPTORS_MAX)
    return;
  uint64_t bit = UINT64_C(1) << descriptor % 64;
  if (is_observed)
    __atomic_or_fetch(&listed[descriptor / 64], bit, __ATOMIC_RELAXED);
  else
    __atomic_and_fetch(&listed[descriptor / 64], ~bit, __ATOMIC_RELAXED);
}

static bool is_listed(DIR *stream) {
  int descriptor = dirfd(stream);
  return descriptor >= 0 && descriptor < DESCRIPTORS_MAX &&
         (__atomic_load_n(&listed[descriptor / 64], __ATOMIC_RELAXED) >> descriptor % 64 & 1) != 0;
}

DIR *opendir(const char *path) {
  double start_s = files_are_observed() ? clock_s() : 0;
  DIR *stream = REAL(opendir)(path);
  if (start_s == 0 || !path_was_readable(path, stream == NULL))
    return stream;
  WITH_ERRNO_KEPT(bool is_observed = observe_path(AT_FDCWD, path, OPENDIR, 0,
                                                  __builtin_return_address(0), clock_s() - start_s);
                  if (stream != NULL) set_listed(dirfd(stream), is_observed));
  return stream;
}

DIR *fdopendir(int descriptor) {
  DIR *stream = REAL(fdopendir)(descriptor);
  if (stream != NULL && files_are_observed())
    WITH_ERRNO_KEPT(set_listed(
        descriptor, observe_descriptor_of_directory(descriptor, __builtin_return_address(0))));
  return stream;
}

/* libc reads many entries by one system call; all calls of the program count. */
#define READDIR_HOOK(NAME, ENTRY)                                                                  \
  struct ENTRY *NAME(DIR *stream) {                                                                \
    if (!is_listed(stream))                                                                        \
      return REAL(NAME)(stream);                                                                   \
    double start_s = clock_s();                                                                    \
    struct ENTRY *entry = REAL(NAME)(stream);                                                      \
    WITH_ERRNO_KEPT(observe_other_files(READDIR, clock_s() - start_s));                            \
    return entry;                                                                                  \
  }

READDIR_HOOK(readdir, dirent)
READDIR_HOOK(readdir64, dirent64)

/* The current directory is part of each relative path. */
#define CHDIR_HOOK(NAME, PARAMETERS, ARGUMENTS)                                                    \
  int NAME PARAMETERS {                                                                            \
    int code = REAL(NAME) ARGUMENTS;                                                               \
    path_forget_directory();                                                                       \
    return code;                                                                                   \
  }

CHDIR_HOOK(chdir, (const char *path), (path))
CHDIR_HOOK(fchdir, (int descriptor), (descriptor))
CHDIR_HOOK(chroot, (const char *path), (path))
