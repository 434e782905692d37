#define _GNU_SOURCE
#include "base/real_call.h"

#include "base/signals.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

/* Names under which MPI libraries of the two families are installed. */
static const char *const mpi_names[] = {
    "libmpi.so.40", "libmpich.so.12", "libmpi.so.12", "libmpi.so", "libmpich.so",
};

static void *find_in_late_mpi(const char *name) {
  for (size_t i = 0; i < sizeof mpi_names / sizeof *mpi_names; i++) {
    void *handle = dlopen(mpi_names[i], RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL)
      continue;
    void *found = dlsym(handle, name);
    dlclose(handle); /* only the reference of this look-up */
    if (found != NULL)
      return found;
  }
  return NULL;
}

void *real_find(const char *name) {
  void *found = dlsym(RTLD_NEXT, name);
  return found != NULL ? found : find_in_late_mpi(name);
}

void *real_find_in_call(const char *name) {
  void *found;
  WITHOUT_SIGNALS(found = real_find(name));
  return found;
}

static bool is_ours(const void *address) {
  Dl_info own, other;
  return dladdr((const void *)is_ours, &own) != 0 && dladdr(address, &other) != 0 &&
         own.dli_fbase == other.dli_fbase;
}

static void *find_among_dependencies(const void *caller, const char *name) {
  Dl_info object;
  void *handle =
      dladdr(caller, &object) != 0 ? dlopen(object.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
  if (handle == NULL)
    return NULL;
  void *found = dlsym(handle, name);
  dlclose(handle); /* only the reference of this look-up */
  return found != NULL && !is_ours(found) ? found : NULL;
}

void *real_find_for(const void *caller, const char *name) {
  void *found = real_find(name);
  return found != NULL ? found : find_among_dependencies(caller, name);
}
