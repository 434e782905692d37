/* Hooks on the system calls that work on a descriptor: those of the program on its own files, and
 * those that ROMIO and ompio make on theirs. Each hook passes the call on and returns what it
 * returned, with errno as the call left it. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "base/path.h"
#include "base/real_call.h"
#include "hooks/observe.h"
#include "record/bypass.h"
#include "record/descriptors.h"
#include "record/elsewhere.h"
#include "record/failed_write.h"
#include "record/positions.h"

#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* Whose descriptor it is. C++ streams are opened as streams of C, and then used by system calls. */
static struct file *find_or_reassign(int descriptor) {
  struct file *file = descriptors_find(descriptor);
  return file != NULL && file->layer == LAYER_STDIO ? reassign_layer(LAYER_POSIX, descriptor, file)
                                                    : file;
}

/* Where the call that just moved so many bytes by the descriptor's own position began. */
static off_t advance_position(struct file *file, enum direction direction, int descriptor,
                              ssize_t moved) {
  return position_advance(descriptor, direction, moved, &file->end_bytes);
}

static struct transfer transfer_of(enum direction direction, off_t offset, size_t asked,
                                   ssize_t moved, double start_s) {
  return (struct transfer){direction, offset, asked, moved, start_s};
}

#define DATA_HOOK(NAME, DIRECTION, PARAMETERS, ARGUMENTS, ASKED, OFFSET)                           \
  ssize_t NAME PARAMETERS {                                                                        \
    struct file *file = find_or_reassign(descriptor);                                              \
    if (file == NULL) {                                                                            \
      ssize_t moved = REAL(NAME) ARGUMENTS;                                                        \
      unrecorded_add(DIRECTION, moved);                                                            \
      if (DIRECTION == WRITING && moved < 0)                                                       \
        WITH_ERRNO_KEPT(failed_write_note_descriptor(descriptor, errno));                          \
      return moved;                                                                                \
    }                                                                                              \
    double start_s = clock_s();                                                                    \
    ssize_t moved = REAL(NAME) ARGUMENTS;                                                          \
    WITH_ERRNO_KEPT(double elapsed_s = clock_s() - start_s;                                        \
                    struct transfer transfer =                                                     \
                        transfer_of(DIRECTION, OFFSET, ASKED, moved, start_s);                     \
                    observe_data(file, transfer, elapsed_s));                                      \
    return moved;                                                                                  \
  }

DATA_HOOK(read, READING, (int descriptor, void *buffer, size_t length),
          (descriptor, buffer, length), length, advance_position(file, READING, descriptor, moved))
DATA_HOOK(write, WRITING, (int descriptor, const void *buffer, size_t length),
          (descriptor, buffer, length), length, advance_position(file, WRITING, descriptor, moved))
DATA_HOOK(readv, READING, (int descriptor, const struct iovec *vector, int count),
          (descriptor, vector, count), 0, advance_position(file, READING, descriptor, moved))
DATA_HOOK(writev, WRITING, (int descriptor, const struct iovec *vector, int count),
          (descriptor, vector, count), 0, advance_position(file, WRITING, descriptor, moved))

#define PREAD_HOOK(NAME)                                                                           \
  DATA_HOOK(NAME, READING, (int descriptor, void *buffer, size_t length, off_t offset),            \
            (descriptor, buffer, length, offset), length, offset)
#define PWRITE_HOOK(NAME)                                                                          \
  DATA_HOOK(NAME, WRITING, (int descriptor, const void *buffer, size_t length, off_t offset),      \
            (descriptor, buffer, length, offset), length, offset)
#define VECTOR_HOOK(NAME, DIRECTION)                                                               \
  DATA_HOOK(NAME, DIRECTION,                                                                       \
            (int descriptor, const struct iovec *vector, int count, off_t offset),                 \
            (descriptor, vector, count, offset), 0, offset)

PREAD_HOOK(pread)
PREAD_HOOK(pread64)
PWRITE_HOOK(pwrite)
PWRITE_HOOK(pwrite64)
WITH_64(VECTOR_HOOK, preadv, READING)
WITH_64(VECTOR_HOOK, pwritev, WRITING)

/* At -1 these begin at the position of the descriptor. */
#define VECTOR2_HOOK(NAME, DIRECTION)                                                              \
  DATA_HOOK(NAME, DIRECTION,                                                                       \
            (int descriptor, const struct iovec *vector, int count, off_t offset, int how),        \
            (descriptor, vector, count, offset, how), 0,                                           \
            offset >= 0 ? offset : advance_position(file, DIRECTION, descriptor, moved))

VECTOR2_HOOK(preadv2, READING)
VECTOR2_HOOK(preadv64v2, READING)
VECTOR2_HOOK(pwritev2, WRITING)
VECTOR2_HOOK(pwritev64v2, WRITING)

/* What compilers make of read and pread where they know the size of the buffer. */
ssize_t __read_chk(int descriptor, void *buffer, size_t length, size_t room);
ssize_t __pread_chk(int descriptor, void *buffer, size_t length, off_t offset, size_t room);
ssize_t __pread64_chk(int descriptor, void *buffer, size_t length, off64_t offset, size_t room);
DATA_HOOK(__read_chk, READING, (int descriptor, void *buffer, size_t length, size_t room),
          (descriptor, buffer, length, room), length,
          advance_position(file, READING, descriptor, moved))
DATA_HOOK(__pread_chk, READING,
          (int descriptor, void *buffer, size_t length, off_t offset, size_t room),
          (descriptor, buffer, length, offset, room), length, offset)
DATA_HOOK(__pread64_chk, READING,
          (int descriptor, void *buffer, size_t length, off64_t offset, size_t room),
          (descriptor, buffer, length, offset, room), length, offset)

/* printf to a descriptor: one call, though libc makes several of what is long. */
#define PRINT_HOOK(NAME, VNAME, PARAMETERS, VPARAMETERS, VARGUMENTS)                               \
  int VNAME VPARAMETERS {                                                                          \
    struct file *file = find_or_reassign(descriptor);                                              \
    double start_s = file != NULL ? clock_s() : 0;                                                 \
    int moved = REAL(VNAME) VARGUMENTS;                                                            \
    if (file == NULL) {                                                                            \
      unrecorded_add(WRITING, moved);                                                              \
      return moved;                                                                                \
    }                                                                                              \
    WITH_ERRNO_KEPT(                                                                               \
        double elapsed_s = clock_s() - start_s;                                                    \
        off_t offset = advance_position(file, WRITING, descriptor, moved);                         \
        observe_data(file, transfer_of(WRITING, offset, 0, moved, start_s), elapsed_s));           \
    return moved;                                                                                  \
  }                                                                                                \
  int NAME PARAMETERS {                                                                            \
    va_list values;                                                                                \
    va_start(values, format);                                                                      \
    int moved = VNAME VARGUMENTS;                                                                  \
    va_end(values);                                                                                \
    return moved;                                                                                  \
  }

int __vdprintf_chk(int descriptor, int flag, const char *format, va_list values);
int __dprintf_chk(int descriptor, int flag, const char *format, ...);
PRINT_HOOK(dprintf, vdprintf, (int descriptor, const char *format, ...),
           (int descriptor, const char *format, va_list values), (descriptor, format, values))
PRINT_HOOK(__dprintf_chk, __vdprintf_chk, (int descriptor, int flag, const char *format, ...),
           (int descriptor, int flag, const char *format, va_list values),
           (descriptor, flag, format, values))

/* Where a copy that has moved so many bytes began: an offset that was given has been moved on. */
static off_t advance_copy_position(struct file *file, enum direction direction, int descriptor,
                                   const off64_t *offset, ssize_t moved) {
  if (moved < 0 || file == NULL)
    return 0;
  return offset != NULL ? *offset - moved : advance_position(file, direction, descriptor, moved);
}

/* From one file to another: a read of the one and a write of the other. The time counts once, for
 * the write where that is observed. */
static void note_copied(struct file *source, off_t from, struct file *target, off_t to,
                        ssize_t moved, double start_s) {
  double elapsed_s = clock_s() - start_s;
  if (source != NULL)
    observe_data(source, transfer_of(READING, from, 0, moved, start_s),
                 target == NULL ? elapsed_s : 0);
  if (target != NULL)
    observe_data(target, transfer_of(WRITING, to, 0, moved, start_s), elapsed_s);
}

/* The kernel counts the bytes of sendfile and copy_file_range for both files, those of splice for
 * none. */
enum copy { COUNTED, NOT_COUNTED };

static void add_copied(enum copy copy, enum direction direction, const struct file *file,
                       ssize_t moved) {
  if (copy == COUNTED && file == NULL)
    unrecorded_add(direction, moved);
  if (copy == NOT_COUNTED && file != NULL)
    unrecorded_subtract(direction, moved);
}

#define COPY_HOOK(NAME, COPY, PARAMETERS, ARGUMENTS, FROM_OFFSET, TO_OFFSET)                       \
  ssize_t NAME PARAMETERS {                                                                        \
    struct file *source = find_or_reassign(from), *target = find_or_reassign(to);                  \
    double start_s = clock_s();                                                                    \
    ssize_t moved = REAL(NAME) ARGUMENTS;                                                          \
    WITH_ERRNO_KEPT(add_copied(COPY, READING, source, moved);                                      \
                    add_copied(COPY, WRITING, target, moved));                                     \
    if (source == NULL && target == NULL)                                                          \
      return moved;                                                                                \
    WITH_ERRNO_KEPT(note_copied(                                                                   \
        source, advance_copy_position(source, READING, from, FROM_OFFSET, moved), target,          \
        advance_copy_position(target, WRITING, to, TO_OFFSET, moved), moved, start_s));            \
    return moved;                                                                                  \
  }

WITH_64(COPY_HOOK, sendfile, COUNTED, (int to, int from, off_t *offset, size_t length),
        (to, from, offset, length), offset, NULL)
COPY_HOOK(copy_file_range, COUNTED,
          (int from, off64_t *from_offset, int to, off64_t *to_offset, size_t length,
           unsigned flags),
          (from, from_offset, to, to_offset, length, flags), from_offset, to_offset)
COPY_HOOK(splice, NOT_COUNTED,
          (int from, off64_t *from_offset, int to, off64_t *to_offset, size_t length,
           unsigned flags),
          (from, from_offset, to, to_offset, length, flags), from_offset, to_offset)

/* An asynchronous call is counted when it is given to libc, as if all of it were moved, and takes
 * no time: libc makes the system call in a thread of its own. */
#define AIO_HOOK(NAME, BLOCK, DIRECTION)                                                           \
  int NAME(struct BLOCK *block) {                                                                  \
    struct file *file = find_or_reassign(block->aio_fildes);                                       \
    int code = REAL(NAME)(block);                                                                  \
    if (file == NULL && code == 0)                                                                 \
      unrecorded_add(DIRECTION, (int64_t)block->aio_nbytes);                                       \
    if (file != NULL && code == 0)                                                                 \
      observe_data(                                                                                \
          file,                                                                                    \
          transfer_of(DIRECTION, block->aio_offset, 0, (ssize_t)block->aio_nbytes, clock_s()), 0); \
    return code;                                                                                   \
  }

AIO_HOOK(aio_read, aiocb, READING)
AIO_HOOK(aio_read64, aiocb64, READING)
AIO_HOOK(aio_write, aiocb, WRITING)
AIO_HOOK(aio_write64, aiocb64, WRITING)

/* All but seeking is done with the descriptors of streams too, and they stay streams. */
#define OTHER_HOOK(NAME, RESULT, WHAT, ARGUMENT, PARAMETERS, ARGUMENTS)                            \
  RESULT NAME PARAMETERS {                                                                         \
    struct file *file = descriptors_find(descriptor);                                              \
    if (file == NULL)                                                                              \
      return REAL(NAME) ARGUMENTS;                                                                 \
    double start_s = clock_s();                                                                    \
    RESULT result = REAL(NAME) ARGUMENTS;                                                          \
    if (WHAT == SYNC && (intptr_t)result == -1)                                                    \
      WITH_ERRNO_KEPT(failed_write_note(file, #NAME, errno));                                      \
    WITH_ERRNO_KEPT(observe_other(file, WHAT, ARGUMENT, clock_s() - start_s));                     \
    return result;                                                                                 \
  }

#define SEEK_HOOK(NAME)                                                                            \
  off_t NAME(int descriptor, off_t offset, int whence) {                                           \
    struct file *file = find_or_reassign(descriptor);                                              \
    if (file == NULL)                                                                              \
      return REAL(NAME)(descriptor, offset, whence);                                               \
    double start_s = clock_s();                                                                    \
    off_t now = REAL(NAME)(descriptor, offset, whence);                                            \
    if (now >= 0)                                                                                  \
      position_set(descriptor, now);                                                               \
    WITH_ERRNO_KEPT(observe_other(file, SEEK, now, clock_s() - start_s));                          \
    return now;                                                                                    \
  }

SEEK_HOOK(lseek)
SEEK_HOOK(lseek64)
OTHER_HOOK(fsync, int, SYNC, 0, (int descriptor), (descriptor))
OTHER_HOOK(fchmod, int, ATTRIBUTES, 0, (int descriptor, mode_t mode), (descriptor, mode))
OTHER_HOOK(fchown, int, ATTRIBUTES, 0, (int descriptor, uid_t user, gid_t group),
           (descriptor, user, group))
OTHER_HOOK(futimens, int, ATTRIBUTES, 0, (int descriptor, const struct timespec times[2]),
           (descriptor, times))
OTHER_HOOK(fdatasync, int, SYNC, 0, (int descriptor), (descriptor))
OTHER_HOOK(sync_file_range, int, SYNC, 0,
           (int descriptor, off64_t offset, off64_t length, unsigned flags),
           (descriptor, offset, length, flags))
WITH_64(OTHER_HOOK, ftruncate, int, TRUNCATION, length, (int descriptor, off_t length),
        (descriptor, length))
OTHER_HOOK(flock, int, LOCK, 0, (int descriptor, int what), (descriptor, what))
WITH_64(OTHER_HOOK, lockf, int, LOCK, 0, (int descriptor, int what, off_t length),
        (descriptor, what, length))
WITH_64(OTHER_HOOK, fallocate, int, ALLOCATION, mode == 0 ? offset + length : -1,
        (int descriptor, int mode, off_t offset, off_t length), (descriptor, mode, offset, length))
WITH_64(OTHER_HOOK, posix_fallocate, int, ALLOCATION, offset + length,
        (int descriptor, off_t offset, off_t length), (descriptor, offset, length))

/* How much of the file a mapping covers. */
static int64_t mapped_bytes(int descriptor, size_t length, off_t offset) {
  struct stat status;
#if __GLIBC_PREREQ(2, 33)
  bool is_known = REAL(fstat)(descriptor, &status) == 0; /* not a call of the program */
#else
  bool is_known = fstat(descriptor, &status) == 0;
#endif
  int64_t behind = is_known && status.st_size > offset ? status.st_size - offset : 0;
  return (int64_t)length < behind ? (int64_t)length : behind;
}

static void note_mapping(struct file *file, size_t length, int access, int flags, int descriptor,
                         off_t offset, double elapsed_s) {
  bool is_written = (flags & MAP_SHARED) != 0 && (access & PROT_WRITE) != 0;
  observe_mapping(file, mapped_bytes(descriptor, length, offset), is_written);
  observe_other(file, MAPPING, (int64_t)length, elapsed_s);
}

/* A program makes its ring by a system call that no hook sees, and then maps it here. */
static void look_for_ring(int descriptor, off_t offset) {
  enum { REQUESTS_OF_RING = 0x10000000 }; /* IORING_OFF_SQES */
  char link[DESCRIPTOR_LINK_BYTES], name[32];
  if (descriptor < 0 || offset != REQUESTS_OF_RING)
    return;
  path_descriptor_link(descriptor, link);
  ssize_t length = readlink(link, name, sizeof name - 1);
  name[length > 0 ? length : 0] = '\0';
  if (strcmp(name, "anon_inode:[io_uring]") == 0)
    bypass_note(BYPASS_IO_URING);
}

#define MAP_HOOK(NAME)                                                                             \
  void *NAME(void *place, size_t length, int access, int flags, int descriptor, off_t offset) {    \
    struct file *file = descriptors_find(descriptor);                                              \
    double start_s = file != NULL ? clock_s() : 0;                                                 \
    void *made = REAL(NAME)(place, length, access, flags, descriptor, offset);                     \
    if (file == NULL)                                                                              \
      WITH_ERRNO_KEPT(look_for_ring(descriptor, offset));                                          \
    else if (made != MAP_FAILED)                                                                   \
      WITH_ERRNO_KEPT(                                                                             \
          note_mapping(file, length, access, flags, descriptor, offset, clock_s() - start_s));     \
    return made;                                                                                   \
  }

MAP_HOOK(mmap)
MAP_HOOK(mmap64)
#if __GLIBC_PREREQ(2, 33)
OTHER_HOOK(fstat, int, STAT, 0, (int descriptor, struct stat *status), (descriptor, status))
OTHER_HOOK(fstat64, int, STAT, 0, (int descriptor, struct stat64 *status), (descriptor, status))
#endif

/* fcntl's argument is absent, an int or a pointer. Read as a pointer it is passed on unchanged on
 * the systems whose calling convention passes variable arguments like named ones (x86-64, aarch64).
 */
#define FCNTL_HOOK(NAME)                                                                           \
  int NAME(int descriptor, int command, ...) {                                                     \
    va_list rest;                                                                                  \
    va_start(rest, command);                                                                       \
    void *argument = va_arg(rest, void *);                                                         \
    va_end(rest);                                                                                  \
    bool locks = command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK ||            \
                 command == F_OFD_SETLKW;                                                          \
    struct file *file = locks ? descriptors_find(descriptor) : NULL;                               \
    double start_s = file != NULL ? clock_s() : 0;                                                 \
    int result = REAL(NAME)(descriptor, command, argument);                                        \
    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)                                          \
      WITH_ERRNO_KEPT(observe_duplicate(descriptor, result));                                      \
    if (command == F_SETFL && result == 0)                                                         \
      position_set_appends(descriptor, ((intptr_t)argument & O_APPEND) != 0);                      \
    if (file == NULL)                                                                              \
      return result;                                                                               \
    WITH_ERRNO_KEPT(observe_other(file, LOCK, 0, clock_s() - start_s));                            \
    return result;                                                                                 \
  }

FCNTL_HOOK(fcntl)
FCNTL_HOOK(fcntl64)
