#define _GNU_SOURCE
#include "record/failed_write.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/path.h"
#include "base/real_call.h"
#include "base/reentrancy.h"
#include "base/signals.h"
#include "record/file_table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char list[PATH_BYTES_MAX + 32]; /* "": nothing is noted */
static bool is_any_noted;              /* atomic */

void failed_write_begin(const char *directory) {
  snprintf(list, sizeof list, "%s/failed-writes", directory);
}

static const char *name_of(int error) {
  return error == ENOSPC ? "ENOSPC" : error == EDQUOT ? "EDQUOT" : error == EIO ? "EIO" : NULL;
}

/* The file is known by its inode: it may get another name before it is staged out. A line is
 * written by one call, so that those of several processes do not mix. */
static void append(const char *path, const struct stat *status, const char *call,
                   const char *error) {
  struct text line = {.is_mapped = true};
  text_add(&line, "{");
  add_string(&line, "path", path);
  add_known(&line, "device", status != NULL, status != NULL ? (int64_t)status->st_dev : 0);
  add_known(&line, "inode", status != NULL, status != NULL ? (int64_t)status->st_ino : 0);
  add_string(&line, "error", error);
  add_string(&line, "call", call);
  add_integer(&line, "unix_us", unix_us());
  text_add(&line, "}\n");
  int descriptor = REAL(open)(list, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor >= 0 && !line.is_cut)
    (void)!REAL(write)(descriptor, line.bytes, line.length);
  if (descriptor >= 0)
    REAL(close)(descriptor);
  text_clear(&line);
}

static void append_of(const struct file *file, const char *call, const char *error) {
  struct stat status;
  append(file->path, lstat(file->path, &status) == 0 ? &status : NULL, call, error);
}

void failed_write_note(struct file *file, const char *call, int error) {
  const char *name = name_of(error);
  if (name == NULL || list[0] == '\0' || in_critical_section() ||
      __atomic_exchange_n(&file->has_failed_write, true, __ATOMIC_RELAXED))
    return;
  __atomic_store_n(&is_any_noted, true, __ATOMIC_RELAXED);
  critical_section_begin();
  WITHOUT_SIGNALS(append_of(file, call, name));
  critical_section_end();
}

/* Many writes to one descriptor may fail: those of the last few files are known. */
static bool remember_reported(const struct stat *status) {
  static struct {
    dev_t device;
    ino_t inode;
  } known[16];
  static int next;
  const int size = sizeof known / sizeof *known;
  for (int i = 0; i < size; i++)
    if (known[i].device == status->st_dev && known[i].inode == status->st_ino)
      return true;
  int at = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) & (size - 1);
  known[at].device = status->st_dev;
  known[at].inode = status->st_ino;
  return false;
}

void failed_write_note_descriptor(int descriptor, int error) {
  static __thread char path[PATH_BYTES_MAX];
  const char *name = name_of(error);
  struct stat status;
  if (name == NULL || list[0] == '\0' || in_critical_section() || fstat(descriptor, &status) != 0 ||
      !S_ISREG(status.st_mode) || remember_reported(&status))
    return;
  critical_section_begin();
  path_of_descriptor(descriptor, path);
  WITHOUT_SIGNALS(append(path, &status, "write", name));
  critical_section_end();
}

void failed_write_forget(const struct file *file) {
  bool was_noted = false;
  if (!__atomic_load_n(&is_any_noted, __ATOMIC_RELAXED) || in_critical_section())
    return;
  critical_section_begin();
  for (enum layer layer = 0; layer < LAYERS; layer++) {
    struct file *known = files_known(file->path, layer);
    if (known != NULL)
      was_noted |= __atomic_exchange_n(&known->has_failed_write, false, __ATOMIC_RELAXED);
  }
  if (was_noted)
    WITHOUT_SIGNALS(append_of(file, "open", NULL));
  critical_section_end();
}
