#define _GNU_SOURCE
#include "hooks/preload_switch.h"

#include "base/library.h"
#include "base/message.h"
#include "base/text.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

/* The id of a process that has exchanged its library: it does so once. */
#define EXCHANGED_VARIABLE "FOREBAY_MPI_EXCHANGED"
#define PRELOAD_VARIABLE "LD_PRELOAD"

extern char **environ;

/* The place of NAME=VALUE, or that of the final NULL. Not by getenv and unsetenv: bash has its own,
 * which must not be called before its main. */
static char **place_of(const char *name) {
  size_t length = strlen(name);
  char **at = environ;
  while (*at != NULL && !(strncmp(*at, name, length) == 0 && (*at)[length] == '='))
    at++;
  return at;
}

static const char *value_of(const char *name) {
  const char *entry = *place_of(name);
  return entry != NULL ? entry + strlen(name) + 1 : NULL;
}

static void remove_variable(const char *name) {
  for (char **at = place_of(name); *at != NULL; at++)
    at[0] = at[1];
}

static const char *rank(void) {
  static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                      "SLURM_PROCID"};
  const char *found = NULL;
  for (size_t i = 0; found == NULL && i < sizeof names / sizeof *names; i++)
    found = value_of(names[i]);
  return found;
}

bool preload_is_silent_rank(void) { return rank() != NULL && strcmp(rank(), "0") != 0; }

bool preload_is_rank(void) { return rank() != NULL; }

enum verdict { STAY, GO_IF_POSSIBLE, GO };

/* By what is loaded; where no MPI is loaded yet, as in Python, by whose launcher started us. */
static enum verdict choose_library(void) {
  if (dlsym(RTLD_DEFAULT, FAMILY_MARKER) != NULL)
    return STAY;
  if (dlsym(RTLD_DEFAULT, OTHER_MARKER) != NULL)
    return GO;
  bool by_open_mpi = value_of("OMPI_COMM_WORLD_SIZE") != NULL;
  bool by_hydra = value_of("HYDI_CONTROL_FD") != NULL && value_of("PMI_RANK") != NULL;
#ifdef OPEN_MPI
  return by_hydra && !by_open_mpi ? GO_IF_POSSIBLE : STAY;
#else
  return by_open_mpi && !by_hydra ? GO_IF_POSSIBLE : STAY;
#endif
}

/* .../lib/forebay/FAMILY/libforebay_mpi.so, of the other family. */
static bool name_sibling(const char *own, char path[PATH_MAX]) {
  char folder[PATH_MAX];
  snprintf(folder, sizeof folder, "%s", own);
  char *file = strrchr(folder, '/');
  if (file == NULL)
    return false;
  *file++ = '\0';
  char *family = strrchr(folder, '/');
  if (family == NULL)
    return false;
  *family = '\0';
  return snprintf(path, PATH_MAX, "%s/" SIBLING "/%s", folder, file) < PATH_MAX;
}

/* LD_PRELOAD with `other` in the place of this library; without it if other is NULL. False if this
 * library is not in it. An entry is recognised by what the loader makes of it. */
static bool preload_with(const char *other, const void *self, struct text *out) {
  const char *rest = value_of(PRELOAD_VARIABLE);
  bool is_found = false;
  text_add(out, PRELOAD_VARIABLE "=");
  while (rest != NULL && *(rest += strspn(rest, ": ")) != '\0') {
    char entry[PATH_MAX];
    int length = (int)strcspn(rest, ": ");
    snprintf(entry, sizeof entry, "%.*s", length, rest);
    rest += length;
    void *handle = dlopen(entry, RTLD_LAZY | RTLD_NOLOAD);
    bool is_self = handle != NULL && handle == self;
    if (handle != NULL)
      dlclose(handle); /* only the reference of this look-up */
    is_found = is_found || is_self;
    const char *kept = is_self ? other : entry;
    if (kept != NULL)
      text_add(out, "%s%s", out->bytes[out->length - 1] == '=' ? "" : ":", kept);
  }
  return is_found && !out->is_cut;
}

static bool is_same_file(const char *one, const char *other) {
  struct stat first, second;
  return stat(one, &first) == 0 && stat(other, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

/* The name that the program was started by, if it is its own and not that of a script; else what
 * the kernel calls it. */
static const char *executable(char path[PATH_MAX]) {
  static const char self[] = "/proc/self/exe";
  const char *started = (const char *)getauxval(AT_EXECFN); /* NOLINT: an address by contract */
  if (started != NULL && is_same_file(started, self))
    return started;
  ssize_t length = readlink(self, path, PATH_MAX - 1);
  path[length > 0 ? length : 0] = '\0';
  return is_same_file(path, self) ? path : self;
}

/* The command line as the kernel has it: a loader that was started by name hides its own words.
 * NULL: there is none. */
static char **arguments(void) {
  struct text line = {0};
  char piece[4096];
  FILE *file = fopen("/proc/self/cmdline", "re");
  if (file == NULL)
    return NULL;
  for (size_t length; (length = fread(piece, 1, sizeof piece, file)) > 0;)
    text_add_bytes(&line, piece, length);
  fclose(file);
  size_t count = 0;
  for (size_t at = 0; at < line.length; at++)
    count += line.bytes[at] == '\0';
  char **words = !line.is_cut && count > 0 ? calloc(count + 1, sizeof *words) : NULL;
  char *at = line.bytes;
  for (size_t i = 0; words != NULL && i < count; i++, at += strlen(at) + 1)
    words[i] = at;
  return words;
}

/* The environment with LD_PRELOAD changed and, after an exchange, the mark of it. */
static char **environment(char *preload, char *mark) {
  size_t count = 0;
  while (environ[count] != NULL)
    count++;
  char **words = calloc(count + 3, sizeof *words);
  if (words == NULL)
    return NULL;
  char **old = place_of(PRELOAD_VARIABLE);
  for (size_t i = 0; i < count; i++)
    words[i] = &environ[i] == old ? preload : environ[i];
  words[count] = mark;
  return words;
}

/* Executes the program again with another library in LD_PRELOAD. Returns only if that fails. */
static void restart_with(const char *other, const void *self) {
  struct text preload = {0};
  char mark[64], path[PATH_MAX];
  if (!preload_with(other, self, &preload)) {
    text_clear(&preload);
    return;
  }
  snprintf(mark, sizeof mark, EXCHANGED_VARIABLE "=%d", (int)getpid());
  char **words = arguments();
  char **variables = environment(preload.bytes, other != NULL ? mark : NULL);
  if (words != NULL && variables != NULL)
    execve(executable(path), words, variables);
  free(variables);
  free(words);
  text_clear(&preload);
}

static bool take_restart_mark(void) {
  const char *mark = value_of(EXCHANGED_VARIABLE);
  bool is_ours = mark != NULL && atoi(mark) == (int)getpid();
  if (mark != NULL)
    remove_variable(EXCHANGED_VARIABLE);
  return is_ours;
}

/* Before all other constructors of this library: 101 is the first that is free. */
__attribute__((constructor(101))) static void exchange(void) {
  Dl_info own;
  void *self = NULL;
  char sibling[PATH_MAX];
  if (environ == NULL || take_restart_mark())
    return;
  enum verdict verdict = choose_library();
  if (verdict == STAY || dladdr1((void *)exchange, &own, &self, RTLD_DL_LINKMAP) == 0 ||
      own.dli_fname == NULL || !name_sibling(own.dli_fname, sibling))
    return;
  if (access(sibling, R_OK) == 0) {
    restart_with(sibling, self);
  } else if (verdict == GO) {
    if (!preload_is_silent_rank())
      message_print("%s is missing, so the files of this program are not recorded\n"
                    "hint: build Forebay with that MPI installed",
                    sibling);
    restart_with(NULL, self);
  }
}
