/* Assumes /proc: without it nothing that was inherited is counted. */
#define _GNU_SOURCE
#include "record/inherited.h"

#include "base/atomic_file.h"
#include "base/path.h"
#include "base/real_call.h"
#include "record/descriptors.h"
#include "record/file_table.h"
#include "record/positions.h"
#include "record/stripe_layout.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DESCRIPTIONS_MAX = 16, LISTING_BYTES = 4096, FDINFO_BYTES = 512 };

/* An open file description, as far as two descriptors of one can be told from others. */
struct description {
  dev_t device;
  ino_t inode;
  off_t offset;
  int flags, descriptor;
};

static struct description known[DESCRIPTIONS_MAX];
static int known_count;

static bool is_same(const struct description *one, const struct description *other) {
  return one->device == other->device && one->inode == other->inode &&
         one->offset == other->offset && one->flags == other->flags;
}

/* `program > file 2>&1` has one position for both. */
static void follow_position(const struct description *description) {
  for (int i = 0; i < known_count; i++)
    if (is_same(&known[i], description)) {
      position_share(known[i].descriptor, description->descriptor);
      return;
    }
  position_begin(description->descriptor, (description->flags & O_APPEND) != 0);
  position_set(description->descriptor, description->offset);
  if (known_count < DESCRIPTIONS_MAX)
    known[known_count++] = *description;
}

/* A regular file that has a name, and is to be recorded. */
static struct file *file_of(int descriptor, struct stat *status) {
  static char path[PATH_BYTES_MAX];
  if (fstat(descriptor, status) != 0 || !S_ISREG(status->st_mode) || status->st_nlink == 0)
    return NULL;
  path_of_descriptor(descriptor, path);
  return path[0] == '/' && !path_is_excluded(path) ? files_for_path(path, LAYER_POSIX) : NULL;
}

/* Without a call on the file itself. */
static void look_up(int descriptor, struct description *description) {
  char path[40], text[FDINFO_BYTES];
  snprintf(path, sizeof path, "/proc/self/fdinfo/%d", descriptor);
  ssize_t length = file_read(path, text, sizeof text - 1);
  text[length > 0 ? length : 0] = '\0';
  long long offset;
  unsigned flags;
  bool is_known = sscanf(text, "pos: %lld flags: %o", &offset, &flags) == 2;
  description->offset = is_known ? offset : POSITION_UNKNOWN;
  description->flags = is_known ? (int)flags : 0;
}

static void bind_inherited(int descriptor) {
  struct stat status;
  struct file *file = descriptor < DESCRIPTORS_MAX ? file_of(descriptor, &status) : NULL;
  if (file == NULL)
    return;
  struct stripe_layout layout = stripe_layout_of(file->path);
  struct description description = {
      .device = status.st_dev, .inode = status.st_ino, .descriptor = descriptor};
  look_up(descriptor, &description);
  file_lock(file);
  file->tally->counters.inherited++;
  file->tally->alignment_bytes = status.st_blksize;
  file->tally->stripe_count = layout.stripe_count;
  file->tally->stripe_bytes = layout.stripe_bytes;
  __atomic_store_n(&file->end_bytes, status.st_size, __ATOMIC_RELAXED);
  file_unlock(file);
  descriptors_set(descriptor, file);
  follow_position(&description);
}

void inherited_begin(void) {
  _Alignas(struct dirent64) char listing[LISTING_BYTES];
  int directory = REAL(open)("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0)
    return;
  long length;
  while ((length = syscall(SYS_getdents64, directory, listing, sizeof listing)) > 0)
    for (long at = 0; at < length;) {
      const struct dirent64 *entry = (const struct dirent64 *)(const void *)(listing + at);
      if (isdigit((unsigned char)entry->d_name[0]) && atoi(entry->d_name) != directory)
        bind_inherited(atoi(entry->d_name));
      at += entry->d_reclen;
    }
  REAL(close)(directory);
}
