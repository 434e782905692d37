/* The program's own calls on files that it opened without MPI-IO: by system calls, or as streams.
 */
#define _GNU_SOURCE
#include "replay_thread.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EITHER = DIRECTIONS };

static bool allows_direction(const struct opened *opened, int direction) {
  int mode = opened->flags & O_ACCMODE;
  return direction == EITHER || mode == O_RDWR || (mode == O_WRONLY) == (direction == WRITING);
}

/* The trace does not say which of several descriptors or streams of one file it was. Takes the last
 * one of that kind that may do it, else the last one that may, else the last. */
static struct opened *choose_opened(struct openings *all, bool is_stream, int direction) {
  struct opened *found = &all->open[all->count - 1];
  int best = 0;
  for (int i = all->count; i-- > 0;) {
    struct opened *one = &all->open[i];
    int fit = allows_direction(one, direction) ? 1 + ((one->stream != NULL) == is_stream) : 0;
    if (fit > best) {
      best = fit;
      found = one;
    }
  }
  return found;
}

static const char *mode_of(int flags) {
  bool is_both = (flags & O_ACCMODE) == O_RDWR;
  if (flags & O_APPEND)
    return is_both ? "a+" : "a";
  if (flags & O_TRUNC)
    return is_both ? flags & O_EXCL ? "w+x" : "w+" : flags & O_EXCL ? "wx" : "w";
  return is_both ? "r+" : (flags & O_ACCMODE) == O_WRONLY ? "w" : "r";
}

/* What the program opened as a descriptor and used as a stream becomes one here as well. */
static FILE *stream_of(struct opened *opened) {
  if (opened->stream == NULL)
    opened->stream = fdopen(opened->descriptor, mode_of(opened->flags));
  return opened->stream;
}

static struct opened opened_as(const struct traced_call *call, const char *target, bool is_stream) {
  struct opened opened = {.flags = (int)call->flags};
  if (is_stream)
    opened.stream = fopen(target, mode_of(opened.flags));
  opened.descriptor = is_stream ? opened.stream != NULL ? fileno(opened.stream) : -1
                                : open(target, opened.flags, (mode_t)call->permissions);
  return opened;
}

static int issue_open(const struct traced_call *call, struct openings *all, const char *target,
                      bool is_stream) {
  if (all->count == OPENINGS_MAX)
    return MPI_ERR_IO;
  struct opened opened = opened_as(call, target, is_stream);
  if (opened.descriptor < 0)
    return MPI_ERR_IO;
  all->open[all->count++] = opened;
  return MPI_SUCCESS;
}

static int issue_close(struct openings *all, struct opened *opened) {
  int code = opened->stream != NULL ? fclose(opened->stream) : close(opened->descriptor);
  for (struct opened *at = opened; at + 1 < all->open + all->count; at++)
    *at = at[1];
  all->count--;
  return code == 0 ? MPI_SUCCESS : MPI_ERR_IO;
}

static int issue_duplicate(struct openings *all, const struct opened *opened) {
  int copy = all->count < OPENINGS_MAX ? dup(opened->descriptor) : -1;
  if (copy < 0)
    return MPI_ERR_IO;
  all->open[all->count++] = (struct opened){.descriptor = copy, .flags = opened->flags};
  return MPI_SUCCESS;
}

/* Moves the stream only if its position differs from the program's, since that counts as a seek.
 * -1: it failed. */
static ssize_t stream_transfer(struct opened *opened, const struct traced_call *call, void *bytes) {
  FILE *stream = stream_of(opened);
  size_t length = (size_t)call->count;
  bool is_written = call->direction == WRITING;
  if (stream == NULL)
    return -1;
  bool appends = is_written && (opened->flags & O_APPEND) != 0;
  if (!appends && ftello(stream) != call->offset && fseeko(stream, call->offset, SEEK_SET) != 0)
    return -1;
  size_t moved = is_written ? fwrite(bytes, 1, length, stream) : fread(bytes, 1, length, stream);
  return ferror(stream) != 0 || (is_written && moved < length) ? -1 : (ssize_t)moved;
}

static int issue_transfer(struct replay_thread *self, const struct traced_call *call,
                          struct openings *all, bool is_stream) {
  struct opened *opened = choose_opened(all, is_stream, call->direction);
  size_t length = (size_t)call->count;
  void *bytes = buffers_bytes(&self->buffers, call->direction, length);
  ssize_t moved;
  if (bytes == NULL)
    return NOT_ISSUED;
  if (is_stream)
    moved = stream_transfer(opened, call, bytes);
  else if (call->direction == WRITING)
    moved = pwrite(opened->descriptor, bytes, length, call->offset);
  else
    moved = pread(opened->descriptor, bytes, length, call->offset);
  self->outcome.bytes += moved > 0 ? moved : 0;
  return moved >= 0 ? MPI_SUCCESS : MPI_ERR_IO;
}

static int issue_mapping(const struct opened *opened, size_t length) {
  int access = (opened->flags & O_ACCMODE) == O_WRONLY ? PROT_WRITE : PROT_READ;
  void *place = mmap(NULL, length, access, MAP_SHARED, opened->descriptor, 0);
  if (place != MAP_FAILED)
    munmap(place, length);
  return MPI_SUCCESS; /* the trace does not say whether it succeeded */
}

static int issue_allocation(const struct opened *opened, int64_t end_bytes) {
  if (end_bytes < 0)
    return NOT_ISSUED;
  posix_fallocate(opened->descriptor, 0, end_bytes); /* the same */
  return MPI_SUCCESS;
}

static int issue_on_path(const struct traced_call *call, const char *target) {
  struct stat status;
  enum trace_system what = (enum trace_system)(call->tag & 0x0f);
  if (what == TRACE_SYSTEM_TRUNCATION)
    return truncate(target, call->number) == 0 ? MPI_SUCCESS : MPI_ERR_IO;
  if (what != TRACE_SYSTEM_STAT)
    return NOT_ISSUED;   /* its opening is not in the trace */
  stat(target, &status); /* the trace does not say what it found */
  return MPI_SUCCESS;
}

static int issue_other(const struct traced_call *call, struct openings *all, bool is_stream) {
  struct opened *opened = choose_opened(all, is_stream, EITHER);
  struct stat status;
  int code = 0;
  if (is_stream && stream_of(opened) == NULL)
    return MPI_ERR_IO;
  switch ((enum trace_system)(call->tag & 0x0f)) {
  case TRACE_SYSTEM_CLOSE:
    return issue_close(all, opened);
  case TRACE_SYSTEM_DUPLICATE:
    return issue_duplicate(all, opened);
  case TRACE_SYSTEM_MAPPING:
    return issue_mapping(opened, (size_t)call->number);
  case TRACE_SYSTEM_ALLOCATION:
    return issue_allocation(opened, call->number);
  case TRACE_SYSTEM_SEEK:
    code = is_stream ? fseeko(opened->stream, call->number, SEEK_SET) != 0
                     : lseek(opened->descriptor, call->number, SEEK_SET) < 0;
    break;
  case TRACE_SYSTEM_SYNC:
    code = is_stream && call->number == 1 ? fflush(opened->stream) : fsync(opened->descriptor);
    break;
  case TRACE_SYSTEM_TRUNCATION:
    code = ftruncate(choose_opened(all, is_stream, WRITING)->descriptor, call->number);
    break;
  case TRACE_SYSTEM_STAT:
    code = fstat(opened->descriptor, &status);
    break;
  default:
    return NOT_ISSUED;
  }
  return code == 0 ? MPI_SUCCESS : MPI_ERR_IO;
}

static int issue_at(struct replay_thread *self, const struct traced_call *call,
                    const char *target) {
  enum trace_system what = (enum trace_system)(call->tag & 0x0f);
  bool is_stream = (call->tag & 0xf0) == TRACE_STREAM;
  struct openings *all = &self->rank->by_path[call->path];
  if (what == TRACE_SYSTEM_OPEN)
    return issue_open(call, all, target, is_stream);
  if (all->count == 0)
    return issue_on_path(call, target);
  if (what == TRACE_SYSTEM_READ || what == TRACE_SYSTEM_WRITE)
    return issue_transfer(self, call, all, is_stream);
  return issue_other(call, all, is_stream);
}

/* Skips locks: they guarded against other programs. */
int issue_system_call(struct replay_thread *self, const struct traced_call *call) {
  if ((call->tag & 0x0f) == TRACE_SYSTEM_LOCK)
    return SKIPPED;
  char *path = reader_text(&self->reader, call->path);
  char *target = options_target(self->rank->options, path);
  int code = target != NULL ? issue_at(self, call, target) : NOT_ISSUED;
  free(path);
  free(target);
  return code;
}
