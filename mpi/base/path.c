#define _GNU_SOURCE
#include "base/path.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

/* A single letter or a '/' before the ':' is no prefix. */
const char *path_without_prefix(const char *name) {
  const char *colon = strchr(name, ':');
  if (colon == NULL || colon - name < 2 || memchr(name, '/', (size_t)(colon - name)) != NULL)
    return name;
  static const char *const drivers[] = {"ufs", "nfs", "lustre", "gpfs", "panfs", "pvfs2", "testfs"};
  for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++)
    if (strncmp(name, drivers[i], (size_t)(colon - name)) == 0 && drivers[i][colon - name] == '\0')
      return colon + 1;
  return name;
}

/* Whoever copies it looks afterwards whether it has changed. */
static struct {
  int state;           /* atomic */
  unsigned generation; /* atomic: changes with the directory */
  pid_t process;
  char path[PATH_BYTES_MAX];
} kept;
enum { UNKNOWN, BEING_FILLED, KNOWN };

static void forget_kept(void) {
  int known = KNOWN;
  __atomic_compare_exchange_n(&kept.state, &known, UNKNOWN, false, __ATOMIC_SEQ_CST,
                              __ATOMIC_RELAXED);
}

void path_forget_directory(void) {
  __atomic_add_fetch(&kept.generation, 1, __ATOMIC_SEQ_CST);
  forget_kept();
}

void path_keep_directory_of(pid_t process) {
  kept.process = process;
  __atomic_store_n(&kept.state, UNKNOWN, __ATOMIC_RELEASE);
}

static bool take_kept(char path[PATH_BYTES_MAX], unsigned generation) {
  if (__atomic_load_n(&kept.state, __ATOMIC_ACQUIRE) != KNOWN)
    return false;
  memccpy(path, kept.path, '\0', PATH_BYTES_MAX);
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  return __atomic_load_n(&kept.generation, __ATOMIC_RELAXED) == generation;
}

static void keep(const char *path, unsigned generation) {
  int unknown = UNKNOWN;
  if (getpid() != kept.process ||
      !__atomic_compare_exchange_n(&kept.state, &unknown, BEING_FILLED, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_RELAXED))
    return;
  memccpy(kept.path, path, '\0', PATH_BYTES_MAX);
  __atomic_store_n(&kept.state, KNOWN, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&kept.generation, __ATOMIC_SEQ_CST) != generation)
    forget_kept();
}

void path_descriptor_link(int descriptor, char link[DESCRIPTOR_LINK_BYTES]) {
  static const char head[] = "/proc/self/fd/";
  char digits[DESCRIPTOR_LINK_BYTES - sizeof head];
  int count = 0;
  unsigned left = descriptor >= 0 ? (unsigned)descriptor : 0;
  do
    digits[count++] = (char)('0' + left % 10);
  while ((left /= 10) > 0);
  char *at = mempcpy(link, head, sizeof head - 1);
  while (count > 0)
    *at++ = digits[--count];
  *at = '\0';
}

void path_of_descriptor(int descriptor, char path[PATH_BYTES_MAX]) {
  char link[DESCRIPTOR_LINK_BYTES];
  path_descriptor_link(descriptor, link);
  ssize_t length = descriptor >= 0 ? readlink(link, path, PATH_BYTES_MAX - 1) : -1;
  path[length > 0 ? length : 0] = '\0';
}

static bool current_directory(char path[PATH_BYTES_MAX]) {
  unsigned generation = __atomic_load_n(&kept.generation, __ATOMIC_ACQUIRE);
  if (take_kept(path, generation))
    return true;
  if (getcwd(path, PATH_BYTES_MAX) == NULL || path[0] != '/')
    return false;
  keep(path, generation);
  return true;
}

static bool directory_of(int directory, char path[PATH_BYTES_MAX]) {
  if (directory == AT_FDCWD)
    return current_directory(path);
  path_of_descriptor(directory, path);
  return path[0] != '\0';
}

bool path_absolute(int directory, const char *name, char path[PATH_BYTES_MAX]) {
  size_t length = 0;
  if (name[0] != '/') {
    if (!directory_of(directory, path))
      return false;
    length = strlen(path);
    if (path[length - 1] != '/')
      path[length++] = '/';
    while (name[0] == '.' && name[1] == '/')
      name += 2;
  }
  size_t more = strlen(name) + 1;
  if (length + more > PATH_BYTES_MAX)
    return false;
  memcpy(path + length, name, more);
  return true;
}

static bool begins_with(const char *text, const char *begin) {
  return strncmp(text, begin, strlen(begin)) == 0;
}

uint64_t path_hash(const char *path, uint64_t seed) {
  uint64_t hash = 0xcbf29ce484222325u + seed; /* FNV-1a */
  for (const char *at = path; *at != '\0'; at++)
    hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
  return hash;
}

static bool ends_with(const char *text, const char *end) {
  size_t length = strlen(text), end_length = strlen(end);
  return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* Shared libraries, and what interpreters have compiled or are set up by: Python's, Java's,
 * Julia's, R's, and the translations that libc reads. */
static bool is_code(const char *name) {
  static const char *const ends[] = {
      ".pyc", ".pth", "._pth", "/pyvenv.cfg", ".jar", ".jmod", ".ji", ".rdb", ".rdx", ".mo",
  };
  const char *suffix = strstr(name, ".so");
  if (suffix != NULL && (suffix[3] == '\0' || suffix[3] == '.'))
    return true;
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
    if (ends_with(name, ends[i]))
      return true;
  return false;
}

/* Where interpreters, and libc with its locales and time zones, keep what is theirs, under whatever
 * prefix they are installed. */
static bool is_of_interpreter(const char *path) {
  static const char *const rooms[] = {
      "/site-packages/", "/dist-packages/", "/lib/python2.",  "/lib/python3.",
      "/lib64/python3.", "/lib/perl5/",     "/lib64/perl5/",  "/share/perl5/",
      "/lib/R/",         "/lib64/R/",       "/share/julia/",  "/lib/julia/",
      "/lib/jvm/",       "/lib/locale/",    "/share/locale/", "/share/zoneinfo/",
  };
  for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++)
    if (strstr(path, rooms[i]) != NULL)
      return true;
  return false;
}

enum { KEPT_OUT_MAX = 4 };
static const char *kept_out[KEPT_OUT_MAX];

void path_exclude(const char *directory) {
  for (int i = 0; i < KEPT_OUT_MAX && directory != NULL; i++)
    if (kept_out[i] == NULL) {
      kept_out[i] = directory;
      return;
    }
}

static bool is_below_excluded(const char *path) {
  for (int i = 0; i < KEPT_OUT_MAX && kept_out[i] != NULL; i++) {
    size_t length = strlen(kept_out[i]);
    if (strncmp(path, kept_out[i], length) == 0 && (path[length] == '/' || path[length] == '\0'))
      return true;
  }
  return false;
}

bool path_is_excluded(const char *path) {
  static const char *const system[] = {
      "/proc/", "/sys/",  "/dev/", "/etc/", "/usr/", "/lib",
      "/bin/",  "/sbin/", "/opt/", "/run/", "/var/",
  };
  const char *last = strrchr(path, '/');
  if (is_code(last != NULL ? last : path) || is_of_interpreter(path) || is_below_excluded(path))
    return true;
  if (begins_with(path, "/dev/shm/") || begins_with(path, "/var/tmp/"))
    return false;
  for (size_t i = 0; i < sizeof system / sizeof *system; i++)
    if (begins_with(path, system[i]))
      return true;
  return false;
}

/* dladdr would wait while another thread loads a library, whose constructor may wait for us. */
static const char *object_at(const void *address) {
#if __GLIBC_PREREQ(2, 35)
  struct dl_find_object found;
  return _dl_find_object((void *)address, &found) == 0 ? found.dlfo_link_map->l_name : NULL;
#else
  Dl_info found;
  return dladdr(address, &found) != 0 ? found.dli_fname : NULL;
#endif
}

bool path_is_of_mpi(const void *address) {
  static const char *const names[] = {
      "libmpi",    "libopen-", "libpmi",   "mca_",       "libprrte",       "libprte",
      "libfabric", "libuc",    "libhwloc", "libibverbs", "librdmacm",      "libpsm",
      "libevent",  "libmunge", "libcuda",  "libslurm",   "libforebay_mpi",
  };
  const char *object = object_at(address);
  const char *slash = object != NULL ? strrchr(object, '/') : NULL;
  if (slash == NULL)
    return false;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (begins_with(slash + 1, names[i]))
      return true;
  return false;
}
