/* Hooks on the calls that start a program, to name those into which the library cannot be loaded,
 * and on those that begin I/O without system calls of libc. */
#define _GNU_SOURCE
#include "base/path.h"
#include "base/real_call.h"
#include "record/bypass.h"

#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

/* As execvp looks for it; the first that can be executed. */
static void look_in_path(const char *name) {
  char path[PATH_BYTES_MAX];
  const char *at = getenv("PATH");
  if (strchr(name, '/') != NULL || at == NULL) {
    bypass_note_program(name);
    return;
  }
  for (const char *end; *at != '\0'; at = *end == ':' ? end + 1 : end) {
    end = strchrnul(at, ':');
    int length = snprintf(path, sizeof path, "%.*s/%s", (int)(end - at), at, name);
    if (length > 0 && (size_t)length < sizeof path &&
        syscall(SYS_faccessat, AT_FDCWD, path, X_OK) == 0) {
      bypass_note_program(path);
      return;
    }
  }
}

/* Looked up early: a child of a program with threads cannot do so if its parent was loading a
 * library. */
#define EXEC_HOOK(NAME, LOOK, PARAMETERS, ARGUMENTS)                                               \
  static __typeof__(&NAME) next_##NAME;                                                            \
  __attribute__((constructor)) static void find_##NAME(void) {                                     \
    next_##NAME = (__typeof__(&NAME))real_find(#NAME);                                             \
  }                                                                                                \
  int NAME PARAMETERS {                                                                            \
    WITH_ERRNO_KEPT(LOOK(path));                                                                   \
    return next_##NAME != NULL ? next_##NAME ARGUMENTS : REAL(NAME) ARGUMENTS;                     \
  }

EXEC_HOOK(execve, bypass_note_program,
          (const char *path, char *const words[], char *const environment[]),
          (path, words, environment))
EXEC_HOOK(execv, bypass_note_program, (const char *path, char *const words[]), (path, words))
EXEC_HOOK(execvp, look_in_path, (const char *path, char *const words[]), (path, words))
EXEC_HOOK(execvpe, look_in_path, (const char *path, char *const words[], char *const environment[]),
          (path, words, environment))
EXEC_HOOK(posix_spawn, bypass_note_program,
          (pid_t * process, const char *path, const posix_spawn_file_actions_t *actions,
           const posix_spawnattr_t *attributes, char *const words[], char *const environment[]),
          (process, path, actions, attributes, words, environment))
EXEC_HOOK(posix_spawnp, look_in_path,
          (pid_t * process, const char *path, const posix_spawn_file_actions_t *actions,
           const posix_spawnattr_t *attributes, char *const words[], char *const environment[]),
          (process, path, actions, attributes, words, environment))

static size_t count_words(va_list rest) {
  size_t count = 1; /* the first one is named */
  while (va_arg(rest, char *) != NULL)
    count++;
  return count;
}

/* The words as an array, on the caller's stack: after vfork there must be no other memory. */
#define LIST_HOOK(NAME, CALL)                                                                      \
  int NAME(const char *path, const char *word, ...) {                                              \
    va_list rest;                                                                                  \
    va_start(rest, word);                                                                          \
    size_t count = count_words(rest);                                                              \
    va_end(rest);                                                                                  \
    char **words = alloca((count + 1) * sizeof *words);                                            \
    va_start(rest, word);                                                                          \
    words[0] = (char *)word;                                                                       \
    for (size_t i = 1; i <= count; i++)                                                            \
      words[i] = va_arg(rest, char *);                                                             \
    char *const *environment = va_arg_environment(&rest);                                          \
    va_end(rest);                                                                                  \
    return CALL;                                                                                   \
  }

#define va_arg_environment(rest) environ
LIST_HOOK(execl, execve(path, words, environment))
LIST_HOOK(execlp, execvpe(path, words, environment))
#undef va_arg_environment
#define va_arg_environment(rest) va_arg(*(rest), char *const *)
LIST_HOOK(execle, execve(path, words, environment))

/* Of liburing and libaio, which make their system calls themselves. */
#define RING_HOOK(NAME, HOW, PARAMETERS, ARGUMENTS)                                                \
  int NAME PARAMETERS;                                                                             \
  int NAME PARAMETERS {                                                                            \
    WITH_ERRNO_KEPT(bypass_note(HOW));                                                             \
    return REAL(NAME) != NULL ? REAL(NAME) ARGUMENTS : -ENOSYS;                                    \
  }

RING_HOOK(io_uring_queue_init, BYPASS_IO_URING, (unsigned entries, void *ring, unsigned flags),
          (entries, ring, flags))
RING_HOOK(io_uring_queue_init_params, BYPASS_IO_URING,
          (unsigned entries, void *ring, void *parameters), (entries, ring, parameters))
RING_HOOK(io_setup, BYPASS_KERNEL_AIO, (int events, void *context), (events, context))
