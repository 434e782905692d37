#define _GNU_SOURCE
#include "trace/trace_file.h"

#include "trace_format.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static char *path;
static int64_t bytes_max, written_bytes;
static int stopped;
static struct statx identity;
static uint8_t buffer[TRACE_BUFFER_BYTES];
static size_t waiting_bytes;
static int64_t waiting_since;

int trace_file_stopped(void) { return stopped; }

/* Raw, see the header; glibc has no function that is sure not to be hooked. */
static int open_raw(int flags) {
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_WRONLY | O_CLOEXEC, 0666);
}

static bool status_raw(int descriptor, struct statx *status) {
  return syscall(SYS_statx, descriptor, "", AT_EMPTY_PATH, STATX_INO | STATX_SIZE, status) == 0;
}

static void close_raw(int descriptor) { syscall(SYS_close, descriptor); }

bool trace_file_make(char *name, int64_t limit) {
  path = name;
  bytes_max = limit < TRACE_BYTES_MIN ? TRACE_BYTES_MIN : limit;
  errno = 0;
  int descriptor = open_raw(O_CREAT | O_TRUNC);
  if (descriptor < 0 || !status_raw(descriptor, &identity) ||
      syscall(SYS_write, descriptor, TRACE_MAGIC, TRACE_MAGIC_BYTES) != TRACE_MAGIC_BYTES)
    stopped = errno != 0 ? errno : ENOSPC;
  written_bytes = TRACE_MAGIC_BYTES;
  if (descriptor >= 0)
    close_raw(descriptor);
  return stopped == 0;
}

/* A write beyond the process's own limit would raise SIGXFSZ, which ends the program. */
static bool is_within_limit(size_t more) {
  struct rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
         (rlim_t)written_bytes + more <= limit.rlim_cur;
}

static int write_parts(int descriptor, struct iovec parts[2]) {
  size_t whole = parts[0].iov_len + parts[1].iov_len, done = 0;
  while (done < whole) {
    ssize_t moved = syscall(SYS_writev, descriptor, parts, 2);
    if (moved < 0 && errno == EINTR)
      continue;
    if (moved <= 0)
      return moved < 0 ? errno : ENOSPC;
    done += (size_t)moved;
    for (int i = 0; i < 2; i++) {
      size_t step = (size_t)moved < parts[i].iov_len ? (size_t)moved : parts[i].iov_len;
      parts[i].iov_base = (char *)parts[i].iov_base + step;
      parts[i].iov_len -= step;
      moved -= (ssize_t)step;
    }
  }
  return 0;
}

/* Another program may have put a file of its own in this one's place. */
static bool is_still_ours(int descriptor) {
  struct statx now;
  return status_raw(descriptor, &now) && now.stx_dev_major == identity.stx_dev_major &&
         now.stx_dev_minor == identity.stx_dev_minor && now.stx_ino == identity.stx_ino &&
         (int64_t)now.stx_size == written_bytes;
}

/* A block that was written in part is taken back: the file holds whole blocks. */
static int write_block(const uint8_t *bytes, size_t length) {
  uint8_t head[TRACE_BLOCK_HEAD_BYTES];
  uint32_t values[2] = {(uint32_t)length, trace_checksum(bytes, length)};
  for (int i = 0; i < TRACE_BLOCK_HEAD_BYTES; i++)
    head[i] = (uint8_t)(values[i / 4] >> 8 * (i % 4));
  if (!is_within_limit(sizeof head + length))
    return EFBIG;
  int descriptor = open_raw(O_APPEND);
  if (descriptor < 0)
    return errno;
  int code = ESTALE;
  if (is_still_ours(descriptor)) {
    struct iovec parts[2] = {{head, sizeof head}, {(void *)bytes, length}};
    code = write_parts(descriptor, parts);
    if (code == 0)
      written_bytes += (int64_t)(sizeof head + length);
    else
      syscall(SYS_ftruncate, descriptor, written_bytes);
  }
  close_raw(descriptor);
  return code;
}

static void write_or_stop(const uint8_t *bytes, size_t length) {
  if (stopped <= 0 && length > 0)
    stopped = write_block(bytes, length) ?: stopped;
}

void trace_file_flush(void) {
  int kept = errno;
  write_or_stop(buffer, waiting_bytes);
  waiting_bytes = 0;
  errno = kept;
}

static bool has_room(size_t more) {
  int64_t heads = 3 * TRACE_BLOCK_HEAD_BYTES; /* of the block that waits, this, and the trailer */
  return written_bytes + (int64_t)(waiting_bytes + more) + heads + TRACE_TRAILER_BYTES_MAX <=
         bytes_max;
}

bool trace_file_add(const uint8_t *record, size_t length, int64_t now) {
  if (stopped == 0 && !has_room(length))
    stopped = -1;
  if (stopped != 0)
    return false;
  if (waiting_bytes + length > sizeof buffer)
    trace_file_flush();
  if (length > sizeof buffer) {
    write_or_stop(record, length);
    return stopped == 0;
  }
  if (waiting_bytes == 0)
    waiting_since = now;
  memcpy(buffer + waiting_bytes, record, length);
  waiting_bytes += length;
  if (now - waiting_since > TRACE_FLUSH_TICKS)
    trace_file_flush();
  return stopped == 0;
}

void trace_file_end(const uint8_t *trailer, size_t length) {
  trace_file_flush();
  int code = write_block(trailer, length);
  stopped = stopped != 0 ? stopped : code;
}
