/* Hooks on the streams of C. Their calls are counted as the program makes them; what libc does
 * below them with its buffers is not seen. */
#define _GNU_SOURCE
#include "clock.h"
#include "next.h"
#include "observe.h"
#include "trace.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Headers have macros for some. */
#undef fread_unlocked
#undef fwrite_unlocked
#undef getc
#undef putc
#undef getc_unlocked
#undef putc_unlocked
#undef fputc_unlocked
#undef fgetc_unlocked

/* Where the stream of a descriptor stands; negative: not known. */
static int64_t places[DESCRIPTORS_MAX];

static struct file *find(FILE *stream, int *descriptor) {
  if (descriptors_highest() < 0)
    return NULL;
  WITH_ERRNO_KEPT(*descriptor = fileno_unlocked(stream));
  struct file *file = descriptors_find(*descriptor);
  return file != NULL && file->layer == LAYER_POSIX ? observe_as(LAYER_STDIO, *descriptor, file)
                                                    : file;
}

static void set_place(int descriptor, int64_t place) {
  if (descriptor >= 0 && descriptor < DESCRIPTORS_MAX)
    __atomic_store_n(&places[descriptor], place, __ATOMIC_RELAXED);
}

/* Where the call that has moved so many bytes began. */
static int64_t began(FILE *stream, int descriptor, ssize_t moved) {
  int64_t length = moved > 0 ? moved : 0;
  int64_t place = __atomic_load_n(&places[descriptor], __ATOMIC_RELAXED);
  if (place < 0)
    place = NEXT(ftello)(stream) - length;
  set_place(descriptor, place + length);
  return place;
}

static void note(struct file *file, FILE *stream, int descriptor, enum direction direction,
                 ssize_t moved, double start_s) {
  double elapsed_s = clock_s() - start_s;
  struct transfer transfer = {direction, began(stream, descriptor, moved), 0, moved, start_s};
  observe_data(file, transfer, elapsed_s);
}

#define STREAM_BODY(DIRECTION, RESULT, CALL, MOVED)                                                \
  int descriptor;                                                                                  \
  struct file *file = find(stream, &descriptor);                                                   \
  double start_s = file != NULL ? clock_s() : 0;                                                   \
  RESULT result = CALL;                                                                            \
  if (file != NULL)                                                                                \
    WITH_ERRNO_KEPT(note(file, stream, descriptor, DIRECTION, MOVED, start_s));                    \
  return result;

#define STREAM_HOOK(DIRECTION, RESULT, NAME, PARAMETERS, ARGUMENTS, MOVED)                         \
  RESULT NAME PARAMETERS { STREAM_BODY(DIRECTION, RESULT, NEXT(NAME) ARGUMENTS, MOVED) }

#define BLOCKS_HOOK(DIRECTION, NAME, BUFFER)                                                       \
  STREAM_HOOK(DIRECTION, size_t, NAME, (BUFFER, size_t size, size_t count, FILE * stream),         \
              (buffer, size, count, stream), (ssize_t)(result * size))

BLOCKS_HOOK(READING, fread, void *buffer)
BLOCKS_HOOK(READING, fread_unlocked, void *buffer)
BLOCKS_HOOK(WRITING, fwrite, const void *buffer)
BLOCKS_HOOK(WRITING, fwrite_unlocked, const void *buffer)

size_t __fread_chk(void *buffer, size_t room, size_t size, size_t count, FILE *stream);
size_t __fread_unlocked_chk(void *buffer, size_t room, size_t size, size_t count, FILE *stream);
STREAM_HOOK(READING, size_t, __fread_chk,
            (void *buffer, size_t room, size_t size, size_t count, FILE *stream),
            (buffer, room, size, count, stream), (ssize_t)(result *size))
STREAM_HOOK(READING, size_t, __fread_unlocked_chk,
            (void *buffer, size_t room, size_t size, size_t count, FILE *stream),
            (buffer, room, size, count, stream), (ssize_t)(result *size))

/* A line is measured by its end, since it may have zeros in it. */
static ssize_t advance(FILE *stream, int descriptor) {
  int64_t place = __atomic_load_n(&places[descriptor], __ATOMIC_RELAXED);
  int64_t now = NEXT(ftello)(stream);
  return place >= 0 && now >= place ? now - place : 0;
}

/* So that advance has something to measure from. */
static void learn_place(FILE *stream, int descriptor) {
  if (__atomic_load_n(&places[descriptor], __ATOMIC_RELAXED) < 0)
    set_place(descriptor, NEXT(ftello)(stream));
}

#define MEASURED_BODY(RESULT, CALL)                                                                \
  int descriptor;                                                                                  \
  struct file *file = find(stream, &descriptor);                                                   \
  if (file == NULL)                                                                                \
    return CALL;                                                                                   \
  WITH_ERRNO_KEPT(learn_place(stream, descriptor));                                                \
  double start_s = clock_s();                                                                      \
  RESULT result = CALL;                                                                            \
  WITH_ERRNO_KEPT(note(file, stream, descriptor, READING, advance(stream, descriptor), start_s));  \
  return result;

#define MEASURED_HOOK(RESULT, NAME, PARAMETERS, ARGUMENTS)                                         \
  RESULT NAME PARAMETERS { MEASURED_BODY(RESULT, NEXT(NAME) ARGUMENTS) }

char *__fgets_chk(char *line, size_t room, int size, FILE *stream);
char *__fgets_unlocked_chk(char *line, size_t room, int size, FILE *stream);
ssize_t __getdelim(char **line, size_t *room, int end, FILE *stream);
MEASURED_HOOK(char *, fgets, (char *line, int size, FILE *stream), (line, size, stream))
MEASURED_HOOK(char *, fgets_unlocked, (char *line, int size, FILE *stream), (line, size, stream))
MEASURED_HOOK(char *, __fgets_chk, (char *line, size_t room, int size, FILE *stream),
              (line, room, size, stream))
MEASURED_HOOK(char *, __fgets_unlocked_chk, (char *line, size_t room, int size, FILE *stream),
              (line, room, size, stream))
MEASURED_HOOK(ssize_t, getline, (char **line, size_t *room, FILE *stream), (line, room, stream))
MEASURED_HOOK(ssize_t, getdelim, (char **line, size_t *room, int end, FILE *stream),
              (line, room, end, stream))
MEASURED_HOOK(ssize_t, __getdelim, (char **line, size_t *room, int end, FILE *stream),
              (line, room, end, stream))

STREAM_HOOK(WRITING, int, fputs, (const char *text, FILE *stream), (text, stream),
            result >= 0 ? (ssize_t)strlen(text) : -1)
STREAM_HOOK(WRITING, int, fputs_unlocked, (const char *text, FILE *stream), (text, stream),
            result >= 0 ? (ssize_t)strlen(text) : -1)
STREAM_HOOK(WRITING, int, vfprintf, (FILE * stream, const char *format, va_list values),
            (stream, format, values), result)

int __vfprintf_chk(FILE *stream, int flag, const char *format, va_list values);
STREAM_HOOK(WRITING, int, __vfprintf_chk,
            (FILE * stream, int flag, const char *format, va_list values),
            (stream, flag, format, values), result)

int fprintf(FILE *stream, const char *format, ...) {
  va_list values;
  va_start(values, format);
  int result = vfprintf(stream, format, values);
  va_end(values);
  return result;
}

int __fprintf_chk(FILE *stream, int flag, const char *format, ...);
int __fprintf_chk(FILE *stream, int flag, const char *format, ...) {
  va_list values;
  va_start(values, format);
  int result = __vfprintf_chk(stream, flag, format, values);
  va_end(values);
  return result;
}

/* Headers give these functions other names, so each symbol is named as it is linked. */
#define SCAN_HOOK(NAME, SYMBOL, VSYMBOL)                                                           \
  int v##NAME(FILE *stream, const char *format, va_list values) __asm__(VSYMBOL);                  \
  int NAME(FILE *stream, const char *format, ...) __asm__(SYMBOL);                                 \
  int v##NAME(FILE *stream, const char *format, va_list values) {                                  \
    static void *cache;                                                                            \
    int (*next)(FILE *, const char *, va_list) =                                                   \
        (int (*)(FILE *, const char *, va_list))next_cached(&cache, VSYMBOL);                      \
    MEASURED_BODY(int, next(stream, format, values))                                               \
  }                                                                                                \
  int NAME(FILE *stream, const char *format, ...) {                                                \
    va_list values;                                                                                \
    va_start(values, format);                                                                      \
    int result = v##NAME(stream, format, values);                                                  \
    va_end(values);                                                                                \
    return result;                                                                                 \
  }

SCAN_HOOK(scan_of_gnu, "fscanf", "vfscanf")
SCAN_HOOK(scan_of_c99, "__isoc99_fscanf", "__isoc99_vfscanf")
SCAN_HOOK(scan_of_c23, "__isoc23_fscanf", "__isoc23_vfscanf")

/* Characters move through the buffer mostly: their time is taken when there is nothing left in it,
 * or no room. */
static bool reaches_system(FILE *stream, enum direction direction) {
  return direction == READING ? stream->_IO_read_ptr >= stream->_IO_read_end
                              : stream->_IO_write_ptr >= stream->_IO_write_end;
}

static void note_character(struct file *file, FILE *stream, int descriptor,
                           enum direction direction, int result, double start_s) {
  ssize_t moved = result != EOF ? 1 : direction == READING ? 0 : -1;
  double known_s = start_s > 0 ? start_s : clock_s();
  double elapsed_s = start_s > 0 ? clock_s() - start_s : 0;
  struct transfer transfer = {direction, began(stream, descriptor, moved), 1, moved, known_s};
  observe_data(file, transfer, elapsed_s);
}

#define CHARACTER_HOOK(DIRECTION, NAME, PARAMETERS, ARGUMENTS)                                     \
  int NAME PARAMETERS {                                                                            \
    int descriptor;                                                                                \
    struct file *file = find(stream, &descriptor);                                                 \
    if (file == NULL)                                                                              \
      return NEXT(NAME) ARGUMENTS;                                                                 \
    double start_s = reaches_system(stream, DIRECTION) ? clock_s() : 0;                            \
    int result = NEXT(NAME) ARGUMENTS;                                                             \
    WITH_ERRNO_KEPT(note_character(file, stream, descriptor, DIRECTION, result, start_s));         \
    return result;                                                                                 \
  }

int _IO_getc(FILE *stream);
int _IO_putc(int character, FILE *stream);
CHARACTER_HOOK(READING, fgetc, (FILE * stream), (stream))
CHARACTER_HOOK(READING, getc, (FILE * stream), (stream))
CHARACTER_HOOK(READING, _IO_getc, (FILE * stream), (stream))
CHARACTER_HOOK(READING, getc_unlocked, (FILE * stream), (stream))
CHARACTER_HOOK(READING, fgetc_unlocked, (FILE * stream), (stream))
CHARACTER_HOOK(WRITING, fputc, (int character, FILE *stream), (character, stream))
CHARACTER_HOOK(WRITING, putc, (int character, FILE *stream), (character, stream))
CHARACTER_HOOK(WRITING, _IO_putc, (int character, FILE *stream), (character, stream))
CHARACTER_HOOK(WRITING, putc_unlocked, (int character, FILE *stream), (character, stream))
CHARACTER_HOOK(WRITING, fputc_unlocked, (int character, FILE *stream), (character, stream))

int ungetc(int character, FILE *stream) {
  int descriptor;
  if (find(stream, &descriptor) != NULL)
    set_place(descriptor, -1);
  return NEXT(ungetc)(character, stream);
}

static void note_moved(struct file *file, FILE *stream, double start_s) {
  double elapsed_s = clock_s() - start_s;
  observe_other(file, SEEK, trace_is_on ? NEXT(ftello)(stream) : 0, elapsed_s);
}

/* Afterwards the stream stands elsewhere. */
#define MOVING_BODY(CALL)                                                                          \
  int descriptor;                                                                                  \
  struct file *file = find(stream, &descriptor);                                                   \
  double start_s = file != NULL ? clock_s() : 0;                                                   \
  CALL;                                                                                            \
  if (file != NULL) {                                                                              \
    set_place(descriptor, -1);                                                                     \
    WITH_ERRNO_KEPT(note_moved(file, stream, start_s));                                            \
  }

#define MOVING_HOOK(NAME, PARAMETERS, ARGUMENTS)                                                   \
  int NAME PARAMETERS {                                                                            \
    MOVING_BODY(int code = NEXT(NAME) ARGUMENTS)                                                   \
    return code;                                                                                   \
  }

MOVING_HOOK(fseek, (FILE * stream, long offset, int whence), (stream, offset, whence))
MOVING_HOOK(fseeko, (FILE * stream, off_t offset, int whence), (stream, offset, whence))
MOVING_HOOK(fseeko64, (FILE * stream, off64_t offset, int whence), (stream, offset, whence))
MOVING_HOOK(fsetpos, (FILE * stream, const fpos_t *place), (stream, place))
MOVING_HOOK(fsetpos64, (FILE * stream, const fpos64_t *place), (stream, place))

void rewind(FILE *stream) { MOVING_BODY(NEXT(rewind)(stream)) }

int fflush(FILE *stream) {
  int descriptor;
  struct file *file = stream != NULL ? find(stream, &descriptor) : NULL;
  double start_s = file != NULL ? clock_s() : 0;
  int code = NEXT(fflush)(stream);
  if (file != NULL)
    WITH_ERRNO_KEPT(observe_other(file, SYNC, 1, clock_s() - start_s));
  return code;
}

/* As fopen opens it. */
static int flags_of(const char *mode) {
  int access = strchr(mode, '+') != NULL ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
  return access | (mode[0] != 'r' ? O_CREAT : 0) | (mode[0] == 'w' ? O_TRUNC : 0) |
         (mode[0] == 'a' ? O_APPEND : 0) | (strchr(mode, 'x') != NULL ? O_EXCL : 0);
}

/* A stream that appends begins where the file ends. */
static void note_opened(const char *path, const char *mode, FILE *stream, const void *caller,
                        double start_s, int64_t bytes_before) {
  if (path == NULL || (stream == NULL && errno == EFAULT))
    return;
  int descriptor = stream != NULL ? fileno_unlocked(stream) : -1;
  set_place(descriptor, mode[0] == 'a' ? -1 : 0);
  observe_open(&(struct opening){LAYER_STDIO, AT_FDCWD, path, descriptor, caller, start_s,
                                 flags_of(mode), 0666, bytes_before});
}

#define FOPEN_HOOK(NAME)                                                                           \
  FILE *NAME(const char *path, const char *mode) {                                                 \
    int64_t bytes_before = trace_size_before_open(AT_FDCWD, path);                                 \
    double start_s = files_are_observed() ? clock_s() : 0;                                         \
    FILE *stream = NEXT(NAME)(path, mode);                                                         \
    if (start_s > 0)                                                                               \
      WITH_ERRNO_KEPT(                                                                             \
          note_opened(path, mode, stream, __builtin_return_address(0), start_s, bytes_before));    \
    return stream;                                                                                 \
  }

FOPEN_HOOK(fopen)
FOPEN_HOOK(fopen64)

FILE *fdopen(int descriptor, const char *mode) {
  FILE *stream = NEXT(fdopen)(descriptor, mode);
  struct file *file = stream != NULL ? descriptors_find(descriptor) : NULL;
  set_place(descriptor, -1);
  if (file != NULL)
    WITH_ERRNO_KEPT(observe_as(LAYER_STDIO, descriptor, file));
  return stream;
}

int fclose(FILE *stream) {
  int descriptor;
  WITH_ERRNO_KEPT(descriptor = fileno_unlocked(stream));
  struct file *file = observe_close(descriptor);
  if (file == NULL)
    return NEXT(fclose)(stream);
  double start_s = clock_s();
  int code = NEXT(fclose)(stream);
  WITH_ERRNO_KEPT(observe_closed(file, start_s, clock_s()));
  return code;
}

/* Without a path only the mode changes, and libc keeps the file. */
#define FREOPEN_HOOK(NAME)                                                                         \
  FILE *NAME(const char *path, const char *mode, FILE *stream) {                                   \
    int before;                                                                                    \
    WITH_ERRNO_KEPT(before = fileno_unlocked(stream));                                             \
    struct file *file = observe_close(before);                                                     \
    int64_t bytes_before = trace_size_before_open(AT_FDCWD, path);                                 \
    double start_s = files_are_observed() ? clock_s() : 0;                                         \
    FILE *opened = NEXT(NAME)(path, mode, stream);                                                 \
    WITH_ERRNO_KEPT(note_reopened(file, path, mode, opened, __builtin_return_address(0), start_s,  \
                                  bytes_before));                                                  \
    return opened;                                                                                 \
  }

static void note_reopened(struct file *before, const char *path, const char *mode, FILE *stream,
                          const void *caller, double start_s, int64_t bytes_before) {
  if (path == NULL && before != NULL && stream != NULL) {
    descriptors_set(fileno_unlocked(stream), before);
    set_place(fileno_unlocked(stream), -1);
    return;
  }
  observe_closed(before, start_s, start_s);
  if (path != NULL && start_s > 0)
    note_opened(path, mode, stream, caller, start_s, bytes_before);
}

FREOPEN_HOOK(freopen)
FREOPEN_HOOK(freopen64)
