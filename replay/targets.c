#define _GNU_SOURCE
#include "targets.h"

#include "buffers.h"
#include "memory.h"
#include "raw_open.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE_BYTES = 1 << 20 };

struct wanted {
  const char *path;
  char *target;
  int64_t first_unix_ns, bytes;
  bool is_written;
};

static int by_path(const void *left, const void *right) {
  const struct wanted *one = left, *other = right;
  int order = strcmp(one->path, other->path);
  if (order != 0)
    return order;
  return one->first_unix_ns < other->first_unix_ns ? -1 : one->first_unix_ns > other->first_unix_ns;
}

static struct wanted *unpack(const char *at, size_t length, size_t *count) {
  struct wanted *all = NULL;
  size_t room = 0;
  *count = 0;
  for (const char *end = at + length; at < end; at += strlen(at) + 1) {
    int64_t numbers[3];
    memcpy(numbers, at, sizeof numbers);
    at += sizeof numbers;
    all = memory_grown(all, &room, *count + 1, sizeof *all);
    all[(*count)++] = (struct wanted){.path = at,
                                      .first_unix_ns = numbers[0],
                                      .bytes = numbers[1],
                                      .is_written = numbers[2] != 0};
  }
  return all;
}

/* One for each path: what the first look of any rank found, written if any rank does. */
static size_t merge(struct wanted *all, size_t count) {
  size_t kept = 0;
  qsort(all, count, sizeof *all, by_path);
  for (size_t i = 0; i < count; i++)
    if (kept > 0 && strcmp(all[kept - 1].path, all[i].path) == 0)
      all[kept - 1].is_written |= all[i].is_written;
    else
      all[kept++] = all[i];
  return kept;
}

static bool is_same_file(const char *one, const char *other) {
  struct stat first, second;
  return strcmp(one, other) == 0 ||
         (stat(one, &first) == 0 && stat(other, &second) == 0 && first.st_dev == second.st_dev &&
          first.st_ino == second.st_ino);
}

static void complain(char *problem, const char *path, const char *what) {
  if (problem[0] == '\0')
    snprintf(problem, TARGETS_PROBLEM_BYTES, "%s: %s", path, what);
}

static void check(struct wanted *file, const struct options *options, char *problem) {
  struct stat now;
  bool was_absent = file->first_unix_ns != INT64_MAX && file->bytes < 0;
  file->target = options_target(options, file->path);
  if (file->target == NULL) {
    complain(problem, file->path,
             "no --map or --directory says where this file is to be, or \"..\" leads out of it");
    return;
  }
  if (!options->in_place && is_same_file(file->path, file->target))
    complain(problem, file->path, "this is the file of the trace itself; --in-place would use it");
  if (stat(file->target, &now) != 0)
    return;
  if (!S_ISREG(now.st_mode))
    complain(problem, file->target, "exists and is not a regular file");
  else if (options->overwrite)
    return;
  else if (file->is_written || was_absent)
    complain(problem, file->target, "exists; --overwrite would replace it");
  else if (file->first_unix_ns != INT64_MAX && now.st_size < file->bytes)
    complain(problem, file->target, "is shorter than it was; --overwrite would create it again");
}

static void make_parents(const char *path) {
  char parent[PATH_MAX];
  snprintf(parent, sizeof parent, "%s", path);
  for (char *slash = strchr(parent + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    mkdir(parent, 0777); /* what cannot be made is seen when the file is opened */
    *slash = '/';
  }
}

static bool fill(int descriptor, int64_t bytes, char *content) {
  for (int64_t left = bytes; left > 0;) {
    ssize_t moved = write(descriptor, content, left < PIECE_BYTES ? (size_t)left : PIECE_BYTES);
    if (moved <= 0)
      return false;
    left -= moved;
  }
  return true;
}

static void make(const struct wanted *file, char *content, char *problem) {
  struct stat now;
  bool is_there = stat(file->target, &now) == 0;
  make_parents(file->target);
  if (file->first_unix_ns == INT64_MAX) /* no trace says how it was */
    return;
  if (file->bytes < 0) {
    if (is_there && unlink(file->target) != 0)
      complain(problem, file->target, strerror(errno));
    return;
  }
  if (is_there && (now.st_size == file->bytes || (!file->is_written && now.st_size > file->bytes)))
    return;
  int descriptor = raw_open(file->target, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC);
  bool is_made = descriptor >= 0 && fill(descriptor, file->bytes, content);
  int code = errno;
  if (descriptor >= 0 && close(descriptor) != 0 && is_made) {
    is_made = false;
    code = errno;
  }
  if (!is_made)
    complain(problem, file->target, strerror(code));
}

void targets_prepare(const char *paths, size_t length, const struct options *options,
                     char *problem) {
  size_t count;
  struct wanted *all = unpack(paths, length, &count);
  char *content = memory_zeroed(PIECE_BYTES, 1);
  content_fill(content, PIECE_BYTES);
  if (all != NULL)
    count = merge(all, count);
  for (size_t i = 0; i < count; i++)
    check(&all[i], options, problem);
  for (size_t i = 0; i < count && problem[0] == '\0'; i++)
    make(&all[i], content, problem);
  for (size_t i = 0; i < count; i++)
    free(all[i].target);
  free(all);
  free(content);
}
