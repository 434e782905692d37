#define _GNU_SOURCE
#include "base/atomic_file.h"

#include "base/real_call.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

ssize_t file_read(const char *path, char *bytes, size_t room) {
  int descriptor = REAL(open)(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return -1;
  ssize_t length = REAL(read)(descriptor, bytes, room);
  REAL(close)(descriptor);
  return length;
}

bool file_write(const char *path, const char *bytes, size_t length) {
  int descriptor = REAL(open)(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0)
    return false;
  size_t done = 0;
  ssize_t more = 1;
  while (done < length && more > 0) {
    more = REAL(write)(descriptor, bytes + done, length - done);
    done += more > 0 ? (size_t)more : 0;
  }
  return REAL(close)(descriptor) == 0 && done == length;
}

/* A device or a pipe must not be replaced by a file. */
static bool is_special(const char *path) {
  struct stat found;
  return stat(path, &found) == 0 && !S_ISREG(found.st_mode);
}

static bool replace(const char *path, const char *temporary, const struct text *text) {
  if (file_write(temporary, text_of(text), text->length) && rename(temporary, path) == 0)
    return true;
  WITH_ERRNO_KEPT(unlink(temporary));
  return false;
}

bool atomic_file_write(const char *path, const struct text *text) {
  struct text temporary = {.is_mapped = true};
  bool good = false;
  text_add(&temporary, "%s.new", path);
  if (text->is_cut || temporary.is_cut)
    errno = ENOMEM;
  else
    good = is_special(path) ? file_write(path, text_of(text), text->length)
                            : replace(path, temporary.bytes, text);
  WITH_ERRNO_KEPT(text_clear(&temporary));
  return good;
}
