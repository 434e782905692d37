#include "record/call.h"

#include "base/clock.h"
#include "base/library.h"
#include "record/lazy_io.h"
#include "record/mpi_handles.h"
#include "record/observation.h"
#include "record/trace_state.h"
#include "settings/settings.h"

/* A copy, not a pointer into the hook's frame: an exception, or a longjmp out of an error handler,
 * leaves that frame without call_end. file is NULL outside of any call. */
static __thread struct call current __attribute__((tls_model("initial-exec")));

/* Stacks grow down: the frames of its callees are below that of the call. */
static bool is_within(const void *frame) {
  return current.file != NULL && (uintptr_t)frame < (uintptr_t)current.frame;
}

struct call *call_current(void) {
  return is_within(__builtin_frame_address(0)) ? &current : NULL;
}

bool call_claim_outermost(const void *frame) {
  if (!settings.is_active || is_within(frame))
    return false;
  current.file = NULL; /* that call was left without its end */
  return true;
}

static void start(struct call *call) {
  call->trace_call_count = trace_call_count();
  call->start_s = clock_s();
  current = *call;
}

void call_begin(struct call *call, enum call_class class, struct file *file) {
  *call = (struct call){.file = file, .class = class, .frame = call->frame};
  if (file != NULL)
    start(call);
}

static bool is_collective(const struct call *call) {
  return call->kind == COLLECTIVE || call->kind == SPLIT_COLLECTIVE || call->kind == SPLIT_END;
}

/* The lock of the file is held. A split call is one, whichever of its halves wrote. */
static void note_active(struct file *file, const struct call *call) {
  if (call->kind != SPLIT_END)
    file->tally->collective_writes++;
  int64_t index = file->tally->collective_writes - 1;
  if (index >= 0 && index < COLLECTIVE_CALLS_MAX && call->wrote_calls > 0)
    file->tally->wrote[index / 8] |= (uint8_t)(1 << index % 8);
}

void call_end(struct call *call) {
  struct file *file = call->file;
  if (file == NULL)
    return;
  if (call->class == CALL_DATA && call->direction == WRITING && is_collective(call))
    lazy_write_back(file); /* the next collective call begins after it on all ranks */
  double end_s = clock_s(), elapsed_s = end_s - call->start_s;
  if (current.file == file && current.frame == call->frame)
    *call = current;
  call->end_s = end_s;
  current.file = NULL;
  file_lock(file);
  struct seconds *seconds = &file->tally->seconds;
  switch (call->class) {
  case CALL_OPEN:
    seconds->open += elapsed_s;
    span_note(&file->tally->moments.opened, call->start_s, 0);
    break;
  case CALL_CLOSE:
    seconds->close += elapsed_s;
    if (end_s > file->tally->moments.opened.last)
      file->tally->moments.opened.last = end_s;
    break;
  case CALL_METADATA:
    seconds->metadata += elapsed_s;
    break;
  case CALL_SYNC:
    seconds->sync += elapsed_s;
    file->tally->counters.sync_calls++;
    break;
  case CALL_DATA:
    seconds->traffic[call->direction].calls += elapsed_s;
    seconds->traffic[call->direction].data += call->data_s;
    seconds->traffic[call->direction].other += call->other_s;
    span_note(&file->tally->moments.program[call->direction], call->start_s, end_s);
    heat_note(&file->tally->asked_heat, call->direction, call->start_s - files_origin_s(),
              end_s - files_origin_s(), call->asked_bytes);
    if (call->direction == WRITING && is_collective(call))
      note_active(file, call);
    break;
  }
  file_unlock(file);
}

void call_begin_data(struct call *call, MPI_File handle, enum direction direction,
                     enum call_kind kind, int64_t count, MPI_Datatype type) {
  call->file = NULL;
  if (!call_claim_outermost(call->frame))
    return;
  struct mpi_handle opened = handles_find(handle);
  if (opened.file == NULL)
    return;
  MPI_Count size = 0;
  if (count > 0 && type != library.no_type && library.Type_size_x(type, &size) != MPI_SUCCESS)
    size = 0;
  *call = (struct call){.file = opened.file,
                        .class = CALL_DATA,
                        .direction = direction,
                        .kind = kind,
                        .frame = call->frame};
  start(call);
  if (kind == SPLIT_END)
    return;
  int64_t bytes = count > 0 ? count * (int64_t)size : 0;
  current.asked_bytes = call->asked_bytes = bytes;
  file_lock(opened.file);
  struct traffic *traffic = &opened.file->tally->counters.traffic[direction];
  traffic->calls[kind]++;
  traffic->asked_bytes += bytes;
  traffic->asked_sizes[size_class(bytes)]++;
  sizes_note(opened.file->tally->asked_sizes[direction], SIZES_MAX, bytes, 1);
  file_unlock(opened.file);
}
