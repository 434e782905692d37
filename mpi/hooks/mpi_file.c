/* The calls of MPI-IO that open and close files and do all else but move data. */
#define _GNU_SOURCE
#include "base/library.h"
#include "base/message.h"
#include "base/real_call.h"
#include "hooks/hdf5.h"
#include "record/call.h"
#include "record/file_table.h"
#include "record/lazy_io.h"
#include "record/mpi_handles.h"
#include "record/stripe_layout.h"
#include "settings/info.h"
#include "settings/settings.h"
#include "trace/trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int open_function(MPI_Comm, const char *, int, MPI_Info, MPI_File *);
typedef int close_function(MPI_File *);

static void note_emulated_layout(struct file *file) {
  struct stripe_layout layout = stripe_layout_of(file->path);
  if (layout.stripe_bytes == 0)
    return;
  file->tally->stripe_count = layout.stripe_count;
  file->tally->stripe_bytes = layout.stripe_bytes;
}

static int64_t number_of(const char *lines, const char *key) {
  char value[32];
  return info_value(lines, key, value, sizeof value) ? atoll(value) : 0;
}

static bool was_given(const struct file *file, const char *key) {
  char ignored[8];
  return info_value(text_of(&file->hints_asked), key, ignored, sizeof ignored) ||
         info_value(text_of(&file->hints_of_program), key, ignored, sizeof ignored);
}

/* Open MPI 4 returns the hints that it was given, known to its component or not. An MPI that
 * returns the hints in force also has values of hints that nobody gave. */
static bool is_echo(const struct file *file, const char *lines) {
  char key[MPI_MAX_INFO_KEY + 1];
  struct info_line line;
  while (info_next(&lines, &line)) {
    snprintf(key, sizeof key, "%.*s", line.key_bytes, line.key);
    if (!was_given(file, key))
      return false;
  }
  return true;
}

/* Asks the MPI which hints it uses. All ranks need the stripe unit; one of them keeps the rest. */
static void note_hints_in_force(struct file *file, MPI_File handle, bool keeps_hints) {
  MPI_Info info;
  struct text lines = {0};
  if (library.File_get_info(handle, &info) != MPI_SUCCESS)
    return;
  info_print(info, &lines);
  if (info != library.no_info)
    library.Info_free(&info);
  file_lock(file);
  const char *known = lines.length > 0 ? text_of(&lines) : text_of(&file->hints_asked);
  file->tally->stripe_bytes = number_of(known, "striping_unit");
  file->tally->stripe_count = number_of(known, "striping_factor");
  note_emulated_layout(file);
  if (keeps_hints && !is_echo(file, text_of(&lines))) {
    text_clear(&file->hints_in_force);
    file->hints_in_force = lines;
    lines = (struct text){0};
  }
  file_unlock(file);
  text_clear(&lines);
}

/* All ranks keep what was asked until the stripe unit is known; the first one keeps it for good. */
static void note_hints_asked(struct file *file, MPI_Info info, const struct hint_rule *rule) {
  struct text of_program = {0};
  info_print(info, &of_program); /* without the lock: an error handler may leave it by longjmp */
  file_lock(file);
  text_clear(&file->hints_asked);
  text_clear(&file->hints_of_program);
  file->hints_of_program = of_program;
  for (int i = 0; rule != NULL && i < rule->count; i++)
    text_add(&file->hints_asked, "%s=%s\n", rule->hints[i].key, rule->hints[i].value);
  file_unlock(file);
}

static void display_hints(struct file *file) {
  struct text text = {0};
  text_add(&text, "PE 0: MPIIO hints for %s:\n", file->path);
  file_lock(file);
  const char *rest = text_of(&file->hints_in_force);
  struct info_line line;
  if (*rest == '\0')
    text_add(&text, "  not told by this MPI\n");
  while (info_next(&rest, &line))
    text_add(&text, "  %-24.*s = %.*s\n", line.key_bytes, line.key, line.value_bytes, line.value);
  file_unlock(file);
  message_write(text_of(&text));
  text_clear(&text);
}

/* What one rank alone has open is buffered anyway. HDF5 reads and writes what other ranks wrote
 * after a barrier alone. */
static bool wants_lazy(MPI_Comm comm, int mode, const struct hint_rule *rule, const void *caller) {
  int ranks = 1;
  if ((mode & MPI_MODE_SEQUENTIAL) != 0 || !hints_lazy(rule, settings.wants_lazy))
    return false;
  library.Comm_size(comm, &ranks);
  return ranks > 1 && !hdf5_is_at(caller);
}

static void note_opened(struct file *file, MPI_Comm comm, bool is_lazy, MPI_File handle) {
  int rank = 0;
  library.Comm_rank(comm, &rank);
  note_hints_in_force(file, handle, rank == 0);
  file_lock(file);
  file->tally->counters.opens++;
  file->tally->counters.hdf5_alignments += hdf5_is_aligning();
  file->records_hints = file->records_hints || rank == 0;
  file->wants_lazy = is_lazy;
  file_unlock(file);
  handles_add(handle, file, rank == 0);
  lazy_begin(file);
  if (settings.wants_display && rank == 0)
    display_hints(file);
}

static void note_open_failure(struct file *file) {
  file_lock(file);
  file->tally->counters.open_failures++;
  file_unlock(file);
}

static int open_observed(open_function *next, const void *caller, MPI_Comm comm, const char *name,
                         int mode, MPI_Info info, MPI_File *handle) {
  struct call call = CALL_HERE;
  struct file *file = files_for_name(name);
  const struct hint_rule *rule =
      hints_find(&settings.hints, name, file != NULL ? file->path : name);
  MPI_Info used = rule != NULL && hints_are_for_mpi(rule) ? info_merged(info, rule) : info;
  if (file != NULL)
    note_hints_asked(file, info, rule);
  call_begin(&call, CALL_OPEN, file);
  int64_t size_before = file != NULL ? trace_size_before(&call, file->path, comm) : 0;
  int code = next(comm, name, mode, used, handle);
  call_end(&call);
  trace_open(&call, comm, name, mode, info, *handle, size_before, code);
  if (used != info)
    library.Info_free(&used);
  if (file != NULL && code == MPI_SUCCESS)
    note_opened(file, comm, wants_lazy(comm, mode, rule, caller), *handle);
  else if (file != NULL)
    note_open_failure(file);
  return code;
}

/* An error of writing back, as one of MPI. */
static int code_of(int error) {
  switch (error) {
  case 0:
    return MPI_SUCCESS;
  case ENOSPC:
    return MPI_ERR_NO_SPACE;
  case EDQUOT:
    return MPI_ERR_QUOTA;
  default:
    return MPI_ERR_IO;
  }
}

/* The code for an error of writing back, which the handler of the file gets. */
static int reported(int error, MPI_File handle) {
  int code = code_of(error);
  if (code != MPI_SUCCESS)
    library.File_call_errhandler(handle, code);
  return code;
}

/* Writes back what the mount has buffered. */
static int sync_lazy(struct file *file, MPI_File handle) {
  return file != NULL ? reported(lazy_sync(file), handle) : MPI_SUCCESS;
}

static int close_observed(close_function *next, MPI_File *handle) {
  struct call call = CALL_HERE;
  struct mpi_handle opened = handles_find(*handle);
  MPI_File closing = *handle;
  if (opened.file != NULL && opened.records_hints)
    note_hints_in_force(opened.file, closing, true);
  call_begin(&call, CALL_CLOSE, opened.file);
  /* Not every MPI reports an error of close(2). */
  int synced = sync_lazy(opened.file, closing);
  if (opened.is_atomic)
    lazy_set_atomic(opened.file, closing, false);
  /* Before the call: another thread may get the same handle as soon as it is free. */
  handles_remove(closing);
  int64_t opening = trace_drop_handle(&call, closing);
  int code = next(handle);
  code = code == MPI_SUCCESS ? synced : code;
  call_end(&call);
  trace_close(&call, opening, code);
  if (opened.file == NULL)
    return code;
  file_lock(opened.file);
  opened.file->tally->counters.closes += code == MPI_SUCCESS;
  file_unlock(opened.file);
  return code;
}

#define OPEN(SYMBOL)                                                                               \
  int SYMBOL(MPI_Comm comm, const char *name, int mode, MPI_Info info, MPI_File *handle) {         \
    open_function *next = REAL(SYMBOL);                                                            \
    return name != NULL && call_claim_outermost(__builtin_frame_address(0))                        \
               ? open_observed(next, __builtin_return_address(0), comm, name, mode, info, handle)  \
               : next(comm, name, mode, info, handle);                                             \
  }

#define CLOSE(SYMBOL)                                                                              \
  int SYMBOL(MPI_File *handle) {                                                                   \
    close_function *next = REAL(SYMBOL);                                                           \
    return handle != NULL && call_claim_outermost(__builtin_frame_address(0))                      \
               ? close_observed(next, handle)                                                      \
               : next(handle);                                                                     \
  }

OPEN(MPI_File_open)
OPEN(PMPI_File_open)
CLOSE(MPI_File_close)
CLOSE(PMPI_File_close)

static void begin(struct call *call, enum call_class class, MPI_File handle) {
  call->file = NULL;
  if (call_claim_outermost(call->frame))
    call_begin(call, class, handles_find(handle).file);
}

#define AS(SYMBOL, CLASS, TRACE, PARAMETERS, ARGUMENTS)                                            \
  int SYMBOL PARAMETERS {                                                                          \
    struct call call = CALL_HERE;                                                                  \
    begin(&call, CLASS, fh);                                                                       \
    int code = REAL(SYMBOL) ARGUMENTS;                                                             \
    call_end(&call);                                                                               \
    TRACE;                                                                                         \
    return code;                                                                                   \
  }

#define CALL(NAME, CLASS, TRACE, PARAMETERS, ARGUMENTS)                                            \
  AS(MPI_##NAME, CLASS, TRACE, PARAMETERS, ARGUMENTS)                                              \
  AS(PMPI_##NAME, CLASS, TRACE, PARAMETERS, ARGUMENTS)

#define TRACE_NUMBER(TAG, NUMBER) trace_number(&call, fh, TAG, NUMBER, code)

CALL(File_set_view, CALL_METADATA,
     trace_view(&call, fh, displacement, element, type, representation, info, code),
     (MPI_File fh, MPI_Offset displacement, MPI_Datatype element, MPI_Datatype type,
      const char *representation, MPI_Info info),
     (fh, displacement, element, type, representation, info))
CALL(File_set_size, CALL_METADATA, TRACE_NUMBER(TRACE_SET_SIZE, size),
     (MPI_File fh, MPI_Offset size), (fh, size))
CALL(File_preallocate, CALL_METADATA, TRACE_NUMBER(TRACE_PREALLOCATE, size),
     (MPI_File fh, MPI_Offset size), (fh, size))
CALL(File_get_size, CALL_METADATA, TRACE_NUMBER(TRACE_GET_SIZE, 0), (MPI_File fh, MPI_Offset *size),
     (fh, size))
CALL(File_set_info, CALL_METADATA, trace_set_info(&call, fh, info, code),
     (MPI_File fh, MPI_Info info), (fh, info))
CALL(File_seek, CALL_METADATA, trace_seek(&call, fh, TRACE_SEEK, offset, whence, code),
     (MPI_File fh, MPI_Offset offset, int whence), (fh, offset, whence))
CALL(File_seek_shared, CALL_METADATA,
     trace_seek(&call, fh, TRACE_SEEK_SHARED, offset, whence, code),
     (MPI_File fh, MPI_Offset offset, int whence), (fh, offset, whence))

/* Atomic mode begins strict, and ends before the file is lazy again. */
#define ATOMICITY(SYMBOL)                                                                          \
  int SYMBOL(MPI_File fh, int flag) {                                                              \
    struct call call = CALL_HERE;                                                                  \
    begin(&call, CALL_METADATA, fh);                                                               \
    int error = call.file != NULL && flag ? lazy_set_atomic(call.file, fh, true) : 0;              \
    int code = REAL(SYMBOL)(fh, flag);                                                             \
    if (code == MPI_SUCCESS)                                                                       \
      code = reported(error, fh);                                                                  \
    if (call.file != NULL && !flag && code == MPI_SUCCESS)                                         \
      lazy_set_atomic(call.file, fh, false);                                                       \
    call_end(&call);                                                                               \
    TRACE_NUMBER(TRACE_SET_ATOMICITY, flag);                                                       \
    return code;                                                                                   \
  }

/* An MPI may sync only the ranks that have written. */
#define SYNC(SYMBOL)                                                                               \
  int SYMBOL(MPI_File fh) {                                                                        \
    struct call call = CALL_HERE;                                                                  \
    begin(&call, CALL_SYNC, fh);                                                                   \
    int code = REAL(SYMBOL)(fh);                                                                   \
    if (code == MPI_SUCCESS)                                                                       \
      code = sync_lazy(call.file, fh);                                                             \
    call_end(&call);                                                                               \
    TRACE_NUMBER(TRACE_SYNC, 0);                                                                   \
    return code;                                                                                   \
  }

ATOMICITY(MPI_File_set_atomicity)
ATOMICITY(PMPI_File_set_atomicity)
SYNC(MPI_File_sync)
SYNC(PMPI_File_sync)
