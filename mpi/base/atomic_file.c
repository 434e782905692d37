#include "base/atomic_file.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

static bool write_to(const char *path, const struct text *text) {
  FILE *file = fopen(path, "w");
  if (file == NULL)
    return false;
  bool good = fwrite(text->bytes, 1, text->length, file) == text->length;
  return fclose(file) == 0 && good;
}

/* A device or a pipe must not be replaced by a file. */
static bool is_special(const char *path) {
  struct stat found;
  return stat(path, &found) == 0 && !S_ISREG(found.st_mode);
}

bool atomic_file_write(const char *path, const struct text *text) {
  struct text beside = {0};
  text_add(&beside, "%s.new", path);
  if (text->is_cut || beside.is_cut) {
    text_clear(&beside);
    errno = ENOMEM;
    return false;
  }
  if (is_special(path)) {
    text_clear(&beside);
    return write_to(path, text);
  }
  bool good = write_to(beside.bytes, text) && rename(beside.bytes, path) == 0;
  int fault = errno;
  if (!good)
    remove(beside.bytes);
  text_clear(&beside);
  errno = fault;
  return good;
}
