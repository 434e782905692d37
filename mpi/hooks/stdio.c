/* Hooks on the streams of C. Their calls are counted as the program makes them; what libc does
 * below them with its buffers is not seen. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "base/real_call.h"
#include "hooks/observe.h"
#include "record/descriptors.h"
#include "record/elsewhere.h"
#include "record/failed_write.h"
#include "record/observation.h"
#include "record/positions.h"
#include "record/single_byte_io.h"
#include "trace/trace.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Headers have macros for some. */
#undef fread_unlocked
#undef fwrite_unlocked
#undef getc
#undef putc
#undef getchar_unlocked
#undef putchar_unlocked
#undef getc_unlocked
#undef putc_unlocked
#undef fputc_unlocked
#undef fgetc_unlocked

static struct file *find_or_reassign(FILE *stream, int *descriptor) {
  if (descriptors_highest() < 0)
    return NULL;
  WITH_ERRNO_KEPT(*descriptor = fileno_unlocked(stream));
  struct file *file = descriptors_find(*descriptor);
  return file != NULL && file->layer == LAYER_POSIX ? reassign_layer(LAYER_STDIO, *descriptor, file)
                                                    : file;
}

/* Where the call that has moved so many bytes began. */
static int64_t advance_position(struct file *file, enum direction direction, int descriptor,
                                ssize_t moved) {
  return position_advance(descriptor, direction, moved, &file->end_bytes);
}

static void note(struct file *file, int descriptor, enum direction direction, ssize_t moved,
                 double start_s) {
  double elapsed_s = clock_s() - start_s;
  off_t offset = advance_position(file, direction, descriptor, moved);
  struct transfer transfer = {direction, offset, 0, moved, start_s};
  observe_data(file, transfer, elapsed_s);
}

/* A stream of no record; one in memory has no descriptor. */
static void note_elsewhere(FILE *stream, enum direction direction, ssize_t moved) {
  if (moved > 0 && unrecorded_is_counted() && fileno_unlocked(stream) >= 0)
    unrecorded_note(direction, moved);
}

#define STREAM_BODY(DIRECTION, RESULT, CALL, MOVED)                                                \
  int descriptor;                                                                                  \
  struct file *file = find_or_reassign(stream, &descriptor);                                       \
  double start_s = file != NULL ? clock_s() : 0;                                                   \
  RESULT result = CALL;                                                                            \
  if (file != NULL && DIRECTION == WRITING && ferror_unlocked(stream))                             \
    WITH_ERRNO_KEPT(failed_write_note(file, "write", errno));                                      \
  if (file != NULL)                                                                                \
    WITH_ERRNO_KEPT(note(file, descriptor, DIRECTION, MOVED, start_s));                            \
  else if (unrecorded_is_counted())                                                                \
    WITH_ERRNO_KEPT(note_elsewhere(stream, DIRECTION, MOVED));                                     \
  return result;

#define STREAM_HOOK(DIRECTION, RESULT, NAME, PARAMETERS, ARGUMENTS, MOVED)                         \
  RESULT NAME PARAMETERS { STREAM_BODY(DIRECTION, RESULT, REAL(NAME) ARGUMENTS, MOVED) }

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

/* The part of the buffer that is still to be read. */
struct unread {
  const char *begin, *end;
};

static struct unread unread_of(const FILE *stream) {
  return (struct unread){stream->_IO_read_ptr, stream->_IO_read_end};
}

/* The bytes read since `before`: out of one buffer, or out of the rest of one and the next. libc
 * would need a system call for the position. */
static ssize_t read_since(struct unread before, const FILE *stream) {
  const char *at = stream->_IO_read_ptr;
  bool is_same_buffer = stream->_IO_read_end == before.end && at >= before.begin;
  return is_same_buffer ? at - before.begin
                        : (before.end - before.begin) + (at - stream->_IO_read_base);
}

/* The length of a line that ends in a newline or fills its buffer is known; that of one with zeros
 * in it, or without an end, is not. */
static ssize_t line_length(const char *line, int size, struct unread before, const FILE *stream) {
  size_t length = line != NULL ? strlen(line) : 0;
  bool is_whole = length > 0 && (line[length - 1] == '\n' || length + 1 == (size_t)size);
  return is_whole ? (ssize_t)length : read_since(before, stream);
}

/* MOVED may use result and before. */
#define MEASURED_BODY(RESULT, CALL, MOVED)                                                         \
  int descriptor;                                                                                  \
  struct file *file = find_or_reassign(stream, &descriptor);                                       \
  if (file == NULL && !unrecorded_is_counted())                                                    \
    return CALL;                                                                                   \
  struct unread before = unread_of(stream);                                                        \
  double start_s = clock_s();                                                                      \
  RESULT result = CALL;                                                                            \
  if (file != NULL)                                                                                \
    WITH_ERRNO_KEPT(note(file, descriptor, READING, MOVED, start_s));                              \
  else                                                                                             \
    WITH_ERRNO_KEPT(note_elsewhere(stream, READING, MOVED));                                       \
  return result;

#define LINE_HOOK(NAME, PARAMETERS, ARGUMENTS)                                                     \
  char *NAME PARAMETERS {                                                                          \
    MEASURED_BODY(char *, REAL(NAME) ARGUMENTS, line_length(result, size, before, stream))         \
  }

char *__fgets_chk(char *line, size_t room, int size, FILE *stream);
char *__fgets_unlocked_chk(char *line, size_t room, int size, FILE *stream);
LINE_HOOK(fgets, (char *line, int size, FILE *stream), (line, size, stream))
LINE_HOOK(fgets_unlocked, (char *line, int size, FILE *stream), (line, size, stream))
LINE_HOOK(__fgets_chk, (char *line, size_t room, int size, FILE *stream),
          (line, room, size, stream))
LINE_HOOK(__fgets_unlocked_chk, (char *line, size_t room, int size, FILE *stream),
          (line, room, size, stream))

ssize_t __getdelim(char **line, size_t *room, int end, FILE *stream);
STREAM_HOOK(READING, ssize_t, getline, (char **line, size_t *room, FILE *stream),
            (line, room, stream), result > 0 ? result : 0)
STREAM_HOOK(READING, ssize_t, getdelim, (char **line, size_t *room, int end, FILE *stream),
            (line, room, end, stream), result > 0 ? result : 0)
STREAM_HOOK(READING, ssize_t, __getdelim, (char **line, size_t *room, int end, FILE *stream),
            (line, room, end, stream), result > 0 ? result : 0)

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

/* What a program prints matters where its standard output is a file. */
#define PRINT_HOOK(NAME, VNAME, PARAMETERS, VPARAMETERS, VARGUMENTS)                               \
  int VNAME VPARAMETERS {                                                                          \
    FILE *stream = stdout;                                                                         \
    STREAM_BODY(WRITING, int, REAL(VNAME) VARGUMENTS, result)                                      \
  }                                                                                                \
  int NAME PARAMETERS {                                                                            \
    va_list values;                                                                                \
    va_start(values, format);                                                                      \
    int result = VNAME VARGUMENTS;                                                                 \
    va_end(values);                                                                                \
    return result;                                                                                 \
  }

int __vprintf_chk(int flag, const char *format, va_list values);
int __printf_chk(int flag, const char *format, ...);
PRINT_HOOK(printf, vprintf, (const char *format, ...), (const char *format, va_list values),
           (format, values))
PRINT_HOOK(__printf_chk, __vprintf_chk, (int flag, const char *format, ...),
           (int flag, const char *format, va_list values), (flag, format, values))

int puts(const char *text) {
  FILE *stream = stdout;
  STREAM_BODY(WRITING, int, REAL(puts)(text), result >= 0 ? (ssize_t)strlen(text) + 1 : -1)
}

/* Headers give these functions other names, so each symbol is named as it is linked. */
#define SCAN_HOOK(NAME, SYMBOL, VSYMBOL)                                                           \
  int v##NAME(FILE *stream, const char *format, va_list values) __asm__(VSYMBOL);                  \
  int NAME(FILE *stream, const char *format, ...) __asm__(SYMBOL);                                 \
  int v##NAME(FILE *stream, const char *format, va_list values) {                                  \
    static void *cache;                                                                            \
    int (*next)(FILE *, const char *, va_list) =                                                   \
        (int (*)(FILE *, const char *, va_list))real_cached(&cache, VSYMBOL);                      \
    MEASURED_BODY(int, next(stream, format, values), read_since(before, stream))                   \
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

/* Of standard input: as fscanf of it. */
#define SCAN_INPUT_HOOK(NAME, SYMBOL, VSYMBOL, VSTREAM)                                            \
  int v##NAME(const char *format, va_list values) __asm__(VSYMBOL);                                \
  int NAME(const char *format, ...) __asm__(SYMBOL);                                               \
  int v##NAME(const char *format, va_list values) { return VSTREAM(stdin, format, values); }       \
  int NAME(const char *format, ...) {                                                              \
    va_list values;                                                                                \
    va_start(values, format);                                                                      \
    int result = v##NAME(format, values);                                                          \
    va_end(values);                                                                                \
    return result;                                                                                 \
  }

SCAN_INPUT_HOOK(scan_input_of_gnu, "scanf", "vscanf", vscan_of_gnu)
SCAN_INPUT_HOOK(scan_input_of_c99, "__isoc99_scanf", "__isoc99_vscanf", vscan_of_c99)
SCAN_INPUT_HOOK(scan_input_of_c23, "__isoc23_scanf", "__isoc23_vscanf", vscan_of_c23)

/* Characters move through the buffer mostly: their time is taken when there is nothing left in it,
 * or no room. */
static bool reaches_system(FILE *stream, enum direction direction) {
  return direction == READING ? stream->_IO_read_ptr >= stream->_IO_read_end
                              : stream->_IO_write_ptr >= stream->_IO_write_end;
}

static void note_character(struct file *file, int descriptor, enum direction direction, int result,
                           double start_s) {
  ssize_t moved = result != EOF ? 1 : direction == READING ? 0 : -1;
  off_t offset = advance_position(file, direction, descriptor, moved);
  if (start_s == 0 && result != EOF && pending_add(file, direction, offset))
    return;
  double known_s = start_s > 0 ? start_s : clock_s();
  double elapsed_s = start_s > 0 ? clock_s() - start_s : 0;
  struct transfer transfer = {direction, offset, 1, moved, known_s};
  observe_data(file, transfer, elapsed_s);
}

#define CHARACTER_BODY(DIRECTION, CALL)                                                            \
  int descriptor;                                                                                  \
  struct file *file = find_or_reassign(stream, &descriptor);                                       \
  if (file == NULL) {                                                                              \
    int character_or_end = CALL;                                                                   \
    WITH_ERRNO_KEPT(note_elsewhere(stream, DIRECTION, character_or_end != EOF));                   \
    return character_or_end;                                                                       \
  }                                                                                                \
  double start_s = reaches_system(stream, DIRECTION) ? clock_s() : 0;                              \
  int result = CALL;                                                                               \
  WITH_ERRNO_KEPT(note_character(file, descriptor, DIRECTION, result, start_s));                   \
  return result;

#define CHARACTER_HOOK(DIRECTION, NAME, PARAMETERS, ARGUMENTS)                                     \
  int NAME PARAMETERS { CHARACTER_BODY(DIRECTION, REAL(NAME) ARGUMENTS) }

#define STANDARD_CHARACTER_HOOK(DIRECTION, NAME, STREAM, PARAMETERS, ARGUMENTS)                    \
  int NAME PARAMETERS {                                                                            \
    FILE *stream = STREAM;                                                                         \
    CHARACTER_BODY(DIRECTION, REAL(NAME) ARGUMENTS)                                                \
  }

STANDARD_CHARACTER_HOOK(READING, getchar, stdin, (void), ())
STANDARD_CHARACTER_HOOK(READING, getchar_unlocked, stdin, (void), ())
STANDARD_CHARACTER_HOOK(WRITING, putchar, stdout, (int character), (character))
STANDARD_CHARACTER_HOOK(WRITING, putchar_unlocked, stdout, (int character), (character))

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
  int descriptor, result = REAL(ungetc)(character, stream);
  if (result != EOF && find_or_reassign(stream, &descriptor) != NULL)
    position_step_back(descriptor);
  return result;
}

/* libc knows the position of a stream after a seek; else it needs a system call, which only a
 * trace is worth. */
static void note_moved(struct file *file, FILE *stream, int descriptor, double start_s) {
  double elapsed_s = clock_s() - start_s;
  bool is_known = stream->_offset >= 0 || trace_is_on;
  int64_t place = is_known ? REAL(ftello)(stream) : POSITION_UNKNOWN;
  position_set(descriptor, place);
  observe_other(file, SEEK, place, elapsed_s);
}

#define MOVING_BODY(CALL)                                                                          \
  int descriptor;                                                                                  \
  struct file *file = find_or_reassign(stream, &descriptor);                                       \
  double start_s = file != NULL ? clock_s() : 0;                                                   \
  CALL;                                                                                            \
  if (file != NULL)                                                                                \
    WITH_ERRNO_KEPT(note_moved(file, stream, descriptor, start_s));

#define MOVING_HOOK(NAME, PARAMETERS, ARGUMENTS)                                                   \
  int NAME PARAMETERS {                                                                            \
    MOVING_BODY(int code = REAL(NAME) ARGUMENTS)                                                   \
    return code;                                                                                   \
  }

MOVING_HOOK(fseek, (FILE * stream, long offset, int whence), (stream, offset, whence))
WITH_64(MOVING_HOOK, fseeko, (FILE * stream, off_t offset, int whence), (stream, offset, whence))
MOVING_HOOK(fsetpos, (FILE * stream, const fpos_t *place), (stream, place))
MOVING_HOOK(fsetpos64, (FILE * stream, const fpos64_t *place), (stream, place))

void rewind(FILE *stream) { MOVING_BODY(REAL(rewind)(stream)) }

/* Programs flush their standard output at their end, also if they write to its descriptor alone. */
static struct file *find_to_flush(FILE *stream) {
  int descriptor;
  if (stream == NULL || descriptors_highest() < 0)
    return NULL;
  WITH_ERRNO_KEPT(descriptor = fileno_unlocked(stream));
  struct file *file = descriptors_find(descriptor);
  return file != NULL && file->layer == LAYER_STDIO ? file : NULL;
}

int fflush(FILE *stream) {
  struct file *file = find_to_flush(stream);
  double start_s = file != NULL ? clock_s() : 0;
  int code = REAL(fflush)(stream);
  if (file != NULL && code != 0)
    WITH_ERRNO_KEPT(failed_write_note(file, "fflush", errno));
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

static void note_opened(const char *path, const char *mode, FILE *stream, const void *caller,
                        double start_s, int64_t bytes_before) {
  if (path == NULL || (stream == NULL && errno == EFAULT))
    return;
  int descriptor = stream != NULL ? fileno_unlocked(stream) : -1;
  observe_open(&(struct opening){LAYER_STDIO, AT_FDCWD, path, descriptor, caller, start_s,
                                 flags_of(mode), 0666, bytes_before});
}

#define FOPEN_HOOK(NAME)                                                                           \
  FILE *NAME(const char *path, const char *mode) {                                                 \
    int64_t bytes_before = trace_size_before_open(AT_FDCWD, path);                                 \
    double start_s = files_are_observed() ? clock_s() : 0;                                         \
    FILE *stream = REAL(NAME)(path, mode);                                                         \
    if (start_s > 0)                                                                               \
      WITH_ERRNO_KEPT(                                                                             \
          note_opened(path, mode, stream, __builtin_return_address(0), start_s, bytes_before));    \
    return stream;                                                                                 \
  }

FOPEN_HOOK(fopen)
FOPEN_HOOK(fopen64)

FILE *fdopen(int descriptor, const char *mode) {
  FILE *stream = REAL(fdopen)(descriptor, mode);
  struct file *file = stream != NULL ? descriptors_find(descriptor) : NULL;
  if (file != NULL && mode[0] == 'a')
    position_set_appends(descriptor, true);
  if (file != NULL)
    WITH_ERRNO_KEPT(reassign_layer(LAYER_STDIO, descriptor, file));
  return stream;
}

int fclose(FILE *stream) {
  int descriptor;
  WITH_ERRNO_KEPT(descriptor = fileno_unlocked(stream));
  struct file *file = observe_close(descriptor);
  if (file == NULL)
    return REAL(fclose)(stream);
  double start_s = clock_s();
  int code = REAL(fclose)(stream);
  if (code != 0)
    WITH_ERRNO_KEPT(failed_write_note(file, "fclose", errno));
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
    FILE *opened = REAL(NAME)(path, mode, stream);                                                 \
    WITH_ERRNO_KEPT(note_reopened(file, path, mode, opened, __builtin_return_address(0), start_s,  \
                                  bytes_before));                                                  \
    return opened;                                                                                 \
  }

static void note_reopened(struct file *before, const char *path, const char *mode, FILE *stream,
                          const void *caller, double start_s, int64_t bytes_before) {
  if (path == NULL && before != NULL && stream != NULL) {
    descriptors_set(fileno_unlocked(stream), before);
    return;
  }
  observe_closed(before, start_s, start_s);
  if (path != NULL && start_s > 0)
    note_opened(path, mode, stream, caller, start_s, bytes_before);
}

FREOPEN_HOOK(freopen)
FREOPEN_HOOK(freopen64)
