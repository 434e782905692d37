#include "call.h"

#include "clock.h"
#include "library.h"
#include "settings.h"

static __thread struct call *current __attribute__((tls_model("initial-exec")));

struct call *call_current(void) {
  return current;
}

bool call_is_outermost(void) { return settings.is_active && current == NULL; }

void call_begin(struct call *call, enum call_class class, struct file *file) {
  *call = (struct call){.file = file, .class = class};
  if (file == NULL)
    return;
  current = call;
  call->start_s = clock_s();
}

static bool is_collective(const struct call *call) { return call->kind == COLLECTIVE; }

/* The lock of the file is held. */
static void note_active(struct file *file, const struct call *call) {
  int64_t index = file->collective_writes++;
  if (index < COLLECTIVE_CALLS_MAX && call->wrote_calls > 0)
    file->wrote[index / 8] |= (uint8_t)(1 << index % 8);
}

void call_end(struct call *call) {
  struct file *file = call->file;
  if (file == NULL)
    return;
  double elapsed_s = clock_s() - call->start_s;
  current = NULL;
  pthread_mutex_lock(&file->lock);
  struct seconds *seconds = &file->seconds;
  switch (call->class) {
  case CALL_OPEN:
    seconds->open += elapsed_s;
    break;
  case CALL_CLOSE:
    seconds->close += elapsed_s;
    break;
  case CALL_METADATA:
    seconds->metadata += elapsed_s;
    break;
  case CALL_SYNC:
    seconds->sync += elapsed_s;
    break;
  case CALL_DATA:
    seconds->traffic[call->direction].calls += elapsed_s;
    seconds->traffic[call->direction].data += call->data_s;
    seconds->traffic[call->direction].other += call->other_s;
    if (call->direction == WRITING && is_collective(call))
      note_active(file, call);
    break;
  }
  pthread_mutex_unlock(&file->lock);
}

void call_begin_data(struct call *call, MPI_File handle, enum direction direction,
                     enum call_kind kind, int64_t count, MPI_Datatype type) {
  call->file = NULL;
  if (!call_is_outermost())
    return;
  struct opened opened = handles_find(handle);
  if (opened.file == NULL)
    return;
  MPI_Count size = 0;
  if (count > 0 && type != library.no_type && library.Type_size_x(type, &size) != MPI_SUCCESS)
    size = 0;
  call_begin(call, CALL_DATA, opened.file);
  call->direction = direction;
  call->kind = kind;
  if (kind == SPLIT_END)
    return;
  int64_t bytes = count > 0 ? count * (int64_t)size : 0;
  pthread_mutex_lock(&opened.file->lock);
  struct traffic *traffic = &opened.file->counters.traffic[direction];
  traffic->calls[kind]++;
  traffic->asked_bytes += bytes;
  traffic->asked_sizes[size_class(bytes)]++;
  pthread_mutex_unlock(&opened.file->lock);
}
