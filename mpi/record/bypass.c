/* Assumes ELF. Never fails the program: what cannot be noted is not. Makes its calls to the system
 * directly: a child of a program with threads, about to execute another, must not look up functions
 * of libc, since its parent may have been loading a library. */
#define _GNU_SOURCE
#include "record/bypass.h"

#include "base/json.h"
#include "base/path.h"
#include "base/signals.h"

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
  LIST_BYTES_MAX = 64 << 10, /* a script may run one program thousands of times */
  HEADERS_MAX = 64,
};

static char list[PATH_BYTES_MAX + 16]; /* "": nothing is noted */

void bypass_begin(const char *directory) { snprintf(list, sizeof list, "%s/bypassed", directory); }

bool bypass_is_wanted(void) { return list[0] != '\0'; }

static int open_file(const char *path, int flags) {
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0600);
}

/* One call writes a line, so that those of several processes do not mix. */
static void write_line(const char *program, const char *how) {
  struct text line = {.is_mapped = true};
  text_add(&line, "{");
  add_string(&line, "program", program);
  add_string(&line, "how", how);
  text_add(&line, "}\n");
  int descriptor = open_file(list, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW);
  if (descriptor >= 0 && !line.is_cut &&
      syscall(SYS_lseek, descriptor, 0, SEEK_END) < LIST_BYTES_MAX)
    syscall(SYS_write, descriptor, line.bytes, line.length);
  if (descriptor >= 0)
    syscall(SYS_close, descriptor);
  text_clear(&line);
}

static void append(const char *program, const char *how) {
  WITHOUT_SIGNALS(write_line(program, how));
}

void bypass_note(enum bypass how) {
  static const char *const names[BYPASSES] = {"io_uring", "kernel_aio", "mpi", "foreign_mpi"};
  static bool is_noted[BYPASSES]; /* atomic */
  char path[PATH_BYTES_MAX];
  if (!bypass_is_wanted() || __atomic_exchange_n(&is_noted[how], true, __ATOMIC_RELAXED))
    return;
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  path[length > 0 ? length : 0] = '\0';
  append(path, names[how]);
}

/* NULL: the dynamic loader loads it, and the library with it. */
static const char *why_not_loaded(int descriptor, const struct stat *status) {
  Elf64_Ehdr head;
  Elf64_Phdr parts[HEADERS_MAX];
  if (syscall(SYS_pread64, descriptor, &head, sizeof head, 0) != sizeof head ||
      memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
    return NULL; /* a script: its interpreter is looked at by nobody, and is dynamic */
  if (head.e_ident[EI_CLASS] != ELFCLASS64)
    return "32-bit";
  if ((status->st_mode & (S_ISUID | S_ISGID)) != 0 && geteuid() != 0)
    return "setuid";
  if (head.e_phnum > HEADERS_MAX || head.e_phentsize != sizeof *parts)
    return NULL;
  size_t bytes = head.e_phnum * sizeof *parts;
  if (syscall(SYS_pread64, descriptor, parts, bytes, head.e_phoff) != (long)bytes)
    return NULL;
  for (int i = 0; i < head.e_phnum; i++)
    if (parts[i].p_type == PT_INTERP)
      return NULL;
  return "static";
}

void bypass_note_program(const char *path) {
  char absolute[PATH_BYTES_MAX];
  struct stat status;
  if (!bypass_is_wanted())
    return;
  int descriptor = open_file(path, O_RDONLY | O_NONBLOCK);
  if (descriptor < 0)
    return;
  const char *why = syscall(SYS_fstat, descriptor, &status) == 0 && S_ISREG(status.st_mode)
                        ? why_not_loaded(descriptor, &status)
                        : NULL;
  syscall(SYS_close, descriptor);
  if (why != NULL)
    append(path_absolute(AT_FDCWD, path, absolute) ? absolute : path, why);
}
