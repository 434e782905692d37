#define _GNU_SOURCE
#include "path.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <stdio.h>
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

static bool directory_of(int directory, char path[PATH_BYTES_MAX]) {
  if (directory == AT_FDCWD)
    return getcwd(path, PATH_BYTES_MAX) != NULL && path[0] == '/';
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
  ssize_t length = readlink(link, path, PATH_BYTES_MAX - 1);
  path[length > 0 ? length : 0] = '\0';
  return length > 0;
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

/* Shared libraries, and what Python has compiled. */
static bool is_code(const char *path) {
  const char *last = strrchr(path, '/');
  const char *name = last != NULL ? last : path;
  const char *suffix = strstr(name, ".so");
  size_t length = strlen(name);
  return (suffix != NULL && (suffix[3] == '\0' || suffix[3] == '.')) ||
         (length > 4 && strcmp(name + length - 4, ".pyc") == 0);
}

enum { KEPT_OUT_MAX = 4 };
static const char *kept_out[KEPT_OUT_MAX];

void path_keep_out(const char *directory) {
  for (int i = 0; i < KEPT_OUT_MAX && directory != NULL; i++)
    if (kept_out[i] == NULL) {
      kept_out[i] = directory;
      return;
    }
}

static bool is_kept_out(const char *path) {
  for (int i = 0; i < KEPT_OUT_MAX && kept_out[i] != NULL; i++) {
    size_t length = strlen(kept_out[i]);
    if (strncmp(path, kept_out[i], length) == 0 && (path[length] == '/' || path[length] == '\0'))
      return true;
  }
  return false;
}

bool path_is_foreign(const char *path) {
  static const char *const system[] = {
      "/proc/", "/sys/",  "/dev/", "/etc/", "/usr/", "/lib",
      "/bin/",  "/sbin/", "/opt/", "/run/", "/var/",
  };
  if (is_code(path) || is_kept_out(path))
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
