#define _GNU_SOURCE
#include "hooks/hdf5.h"

#include "base/message.h"
#include "base/path.h"
#include "base/real_call.h"
#include "settings/hints.h"
#include "settings/settings.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* As HDF5 declares them from 1.10 on. Before, an identifier had 32 bits; those go through the hook
 * unchanged, in the lower half of the same registers. */
typedef int64_t hid_t;
typedef unsigned long long hsize_t;

enum { MAJOR_NEEDED = 1, MINOR_NEEDED = 10 };

typedef hid_t create_function(const char *, unsigned, hid_t, hid_t);

/* Declared nowhere else. */
create_function H5Fcreate;

#define FUNCTIONS(X)                                                                               \
  X(int, H5open, (void))                                                                           \
  X(int, H5get_libversion, (unsigned *, unsigned *, unsigned *))                                   \
  X(hid_t, H5Pcreate, (hid_t))                                                                     \
  X(hid_t, H5Pcopy, (hid_t))                                                                       \
  X(int, H5Pset_alignment, (hid_t, hsize_t, hsize_t))                                              \
  X(int, H5Pclose, (hid_t))

struct hdf5 {
#define DECLARE(type, name, parameters) type(*name) parameters;
  FUNCTIONS(DECLARE)
#undef DECLARE
  const hid_t *access_class; /* what the macro H5P_FILE_ACCESS names */
};

/* In each HDF5 since 1.6, linked statically or not. Not as one piece here: this library is not
 * HDF5.
 */
#define MARKER_BEGIN "HDF5 library "
#define MARKER_END "version"

static __thread bool is_aligning;

bool hdf5_is_aligning(void) { return is_aligning; }

/* The object that has code at an address, and whether one of its parts that are only read has the
 * marker. */
struct search {
  uintptr_t address;
  const char *marker;
  size_t marker_bytes;
  bool is_found;
};

static int search_object(struct dl_phdr_info *object, size_t size, void *context) {
  struct search *search = context;
  bool is_it = false, has_marker = false;
  (void)size;
  for (int i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &object->dlpi_phdr[i];
    uintptr_t begin = object->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_LOAD)
      is_it = is_it || search->address - begin < part->p_memsz;
  }
  for (int i = 0; is_it && !has_marker && i < object->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &object->dlpi_phdr[i];
    if (part->p_type == PT_LOAD && (part->p_flags & (PF_R | PF_W)) == PF_R)
      has_marker = memmem((const void *)(object->dlpi_addr + part->p_vaddr), part->p_filesz,
                          search->marker, search->marker_bytes) != NULL;
  }
  search->is_found = has_marker;
  return is_it;
}

bool hdf5_is_at(const void *address) {
  static const char parts[] = MARKER_BEGIN "\0" MARKER_END;
  char marker[sizeof parts];
  snprintf(marker, sizeof marker, "%s%s", parts, parts + sizeof MARKER_BEGIN);
  struct search search = {(uintptr_t)address, marker, strlen(marker), false};
  dl_iterate_phdr(search_object, &search);
  return search.is_found;
}

static void warn_once(const char *why) {
  static bool is_said;
  if (settings.rank == 0 && !__atomic_exchange_n(&is_said, true, __ATOMIC_RELAXED))
    message_print(HDF5_ALIGNMENT " is left alone: %s", why);
}

/* A program that is not position independent has its own copy of the variable, and the library uses
 * that one; its own then never gets a value. */
static const hid_t *access_class(const void *caller) {
  const hid_t *own = real_find_for(caller, "H5P_CLS_FILE_ACCESS_ID_g");
  return own != NULL && *own > 0 ? own : dlsym(RTLD_DEFAULT, "H5P_CLS_FILE_ACCESS_ID_g");
}

static bool bind_hdf5(const void *caller, struct hdf5 *hdf5) {
  bool complete = true;
#define FIND(type, name, parameters)                                                               \
  hdf5->name = (__typeof__(hdf5->name))real_find_for(caller, #name);                               \
  complete = complete && hdf5->name != NULL;
  FUNCTIONS(FIND)
#undef FIND
  if (!complete || hdf5->H5open() < 0)
    return false;
  hdf5->access_class = access_class(caller);
  return hdf5->access_class != NULL;
}

static bool is_too_old(const struct hdf5 *hdf5) {
  unsigned major = 0, minor = 0, release = 0;
  hdf5->H5get_libversion(&major, &minor, &release);
  return major < MAJOR_NEEDED || (major == MAJOR_NEEDED && minor < MINOR_NEEDED);
}

/* A copy of the list with the alignment in it, to be closed; negative if there is none. */
static hid_t aligned(const struct hdf5 *hdf5, hid_t access, struct hint_alignment alignment) {
  static const hid_t defaults = 0; /* H5P_DEFAULT */
  hid_t copy = access == defaults ? hdf5->H5Pcreate(*hdf5->access_class) : hdf5->H5Pcopy(access);
  if (copy < 0 || hdf5->H5Pset_alignment(copy, alignment.threshold_bytes, alignment.bytes) >= 0)
    return copy;
  hdf5->H5Pclose(copy);
  return -1;
}

static struct hint_alignment requested_alignment(const char *name) {
  static const struct hint_alignment none;
  char path[PATH_BYTES_MAX];
  if (name == NULL || !settings.is_active || settings.hints.count == 0)
    return none;
  bool is_known = path_absolute(AT_FDCWD, path_without_prefix(name), path);
  const struct hint_rule *rule = hints_find(&settings.hints, name, is_known ? path : name);
  return rule != NULL ? hints_alignment(rule) : none;
}

hid_t H5Fcreate(const char *name, unsigned flags, hid_t creation, hid_t access) {
  const void *caller = __builtin_return_address(0);
  create_function *next = (create_function *)real_find_for(caller, "H5Fcreate");
  struct hint_alignment alignment = requested_alignment(name);
  struct hdf5 hdf5;
  hid_t copy = -1;
  if (next == NULL) {
    warn_once("the caller of H5Fcreate has no HDF5 library loaded with it");
    return -1;
  }
  if (alignment.bytes > 0 && !bind_hdf5(caller, &hdf5))
    warn_once("a function of HDF5 was not found");
  else if (alignment.bytes > 0 && is_too_old(&hdf5))
    warn_once("it needs HDF5 1.10 or later");
  else if (alignment.bytes > 0)
    copy = aligned(&hdf5, access, alignment);
  if (copy < 0)
    return next(name, flags, creation, access);
  is_aligning = true;
  hid_t file = next(name, flags, creation, copy);
  is_aligning = false;
  hdf5.H5Pclose(copy);
  return file;
}
