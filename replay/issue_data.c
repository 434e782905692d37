/* The calls that move data. */
#include "replay_thread.h"

#include <limits.h>

struct arguments {
  MPI_File file;
  MPI_Offset offset;
  void *buffer;
  MPI_Count count;
  MPI_Datatype type;
  MPI_Request *request;
};

/* The calls of one direction, by place and kind. */
#define CALLS(NAME, VERB)                                                                          \
  static int NAME(int place, int kind, const struct arguments *a) {                                \
    int count = (int)a->count;                                                                     \
    MPI_Status *none = MPI_STATUS_IGNORE;                                                          \
    switch (place * TRACE_KINDS + kind) {                                                          \
    case TRACE_AT *TRACE_KINDS + INDEPENDENT:                                                      \
      return MPI_File_##VERB##_at(a->file, a->offset, a->buffer, count, a->type, none);            \
    case TRACE_AT *TRACE_KINDS + COLLECTIVE:                                                       \
      return MPI_File_##VERB##_at_all(a->file, a->offset, a->buffer, count, a->type, none);        \
    case TRACE_AT *TRACE_KINDS + NONBLOCKING:                                                      \
      return MPI_File_i##VERB##_at(a->file, a->offset, a->buffer, count, a->type, a->request);     \
    case TRACE_AT *TRACE_KINDS + NONBLOCKING_COLLECTIVE:                                           \
      return MPI_File_i##VERB##_at_all(a->file, a->offset, a->buffer, count, a->type, a->request); \
    case TRACE_AT *TRACE_KINDS + SPLIT_COLLECTIVE:                                                 \
      return MPI_File_##VERB##_at_all_begin(a->file, a->offset, a->buffer, count, a->type);        \
    case TRACE_AT *TRACE_KINDS + SPLIT_END:                                                        \
      return MPI_File_##VERB##_at_all_end(a->file, a->buffer, none);                               \
    case TRACE_POINTER *TRACE_KINDS + INDEPENDENT:                                                 \
      return MPI_File_##VERB(a->file, a->buffer, count, a->type, none);                            \
    case TRACE_POINTER *TRACE_KINDS + COLLECTIVE:                                                  \
      return MPI_File_##VERB##_all(a->file, a->buffer, count, a->type, none);                      \
    case TRACE_POINTER *TRACE_KINDS + NONBLOCKING:                                                 \
      return MPI_File_i##VERB(a->file, a->buffer, count, a->type, a->request);                     \
    case TRACE_POINTER *TRACE_KINDS + NONBLOCKING_COLLECTIVE:                                      \
      return MPI_File_i##VERB##_all(a->file, a->buffer, count, a->type, a->request);               \
    case TRACE_POINTER *TRACE_KINDS + SPLIT_COLLECTIVE:                                            \
      return MPI_File_##VERB##_all_begin(a->file, a->buffer, count, a->type);                      \
    case TRACE_POINTER *TRACE_KINDS + SPLIT_END:                                                   \
      return MPI_File_##VERB##_all_end(a->file, a->buffer, none);                                  \
    case TRACE_SHARED *TRACE_KINDS + INDEPENDENT:                                                  \
      return MPI_File_##VERB##_shared(a->file, a->buffer, count, a->type, none);                   \
    case TRACE_SHARED *TRACE_KINDS + COLLECTIVE:                                                   \
      return MPI_File_##VERB##_ordered(a->file, a->buffer, count, a->type, none);                  \
    case TRACE_SHARED *TRACE_KINDS + NONBLOCKING:                                                  \
      return MPI_File_i##VERB##_shared(a->file, a->buffer, count, a->type, a->request);            \
    case TRACE_SHARED *TRACE_KINDS + SPLIT_COLLECTIVE:                                             \
      return MPI_File_##VERB##_ordered_begin(a->file, a->buffer, count, a->type);                  \
    case TRACE_SHARED *TRACE_KINDS + SPLIT_END:                                                    \
      return MPI_File_##VERB##_ordered_end(a->file, a->buffer, none);                              \
    default:                                                                                       \
      return NOT_ISSUED;                                                                           \
    }                                                                                              \
  }

CALLS(issue_read, read)
CALLS(issue_write, write)

/* More elements than an int counts, as one element of a type of so many. Freed at once: the MPI
 * keeps it as long as it needs it. */
static int wrap_large_count(struct arguments *arguments, MPI_Datatype *wrapped) {
  enum { PIECE = 1 << 20 };
  MPI_Datatype piece, types[2];
  MPI_Count extent, lower, whole = arguments->count / PIECE;
  int lengths[2] = {(int)whole, (int)(arguments->count % PIECE)}, code;
  MPI_Type_get_extent_x(arguments->type, &lower, &extent);
  MPI_Aint places[2] = {0, (MPI_Aint)(whole * PIECE * extent)};
  MPI_Type_contiguous(PIECE, arguments->type, &piece);
  types[0] = piece;
  types[1] = arguments->type;
  code = MPI_Type_create_struct(2, lengths, places, types, wrapped);
  MPI_Type_free(&piece);
  if (code == MPI_SUCCESS)
    code = MPI_Type_commit(wrapped);
  arguments->type = *wrapped;
  arguments->count = 1;
  return code;
}

static int issue_with(int direction, int place, int kind, struct arguments *arguments) {
  MPI_Datatype wrapped = MPI_DATATYPE_NULL;
  if (arguments->count > INT_MAX) {
    int code = wrap_large_count(arguments, &wrapped);
    if (code != MPI_SUCCESS)
      return code;
  }
  int code = direction == WRITING ? issue_write(place, kind, arguments)
                                  : issue_read(place, kind, arguments);
  if (wrapped != MPI_DATATYPE_NULL)
    MPI_Type_free(&wrapped);
  return code;
}

int issue_data(struct replay_thread *self, const struct traced_call *call) {
  struct handle *handle = &self->rank->handles[call->opening];
  struct arguments arguments = {
      .file = handle->file, .offset = call->offset, .buffer = handle->split_buffer};
  if (call->request >= 0)
    arguments.request = &self->rank->requests[call->request];
  if (call->kind != SPLIT_END) {
    const struct built_type *type = types_get(&self->types, call->type);
    if (type == NULL)
      return NOT_ISSUED;
    arguments.type = type->type;
    arguments.count = call->count;
    arguments.buffer = buffers_for(&self->buffers, call->direction, type, call->count);
    MPI_Count size = 0;
    MPI_Type_size_x(type->type, &size);
    self->outcome.bytes += call->count > 0 ? call->count * (int64_t)size : 0;
  }
  if (call->kind == SPLIT_COLLECTIVE)
    handle->split_buffer = arguments.buffer;
  return issue_with(call->direction, call->place, call->kind, &arguments);
}
