/* The calls of MPI-IO that move no data. */
#define _GNU_SOURCE
#include "replay_thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The program's own hints; those of the environment are added as they were for the program. */
static MPI_Info info_of(const struct reader *reader, int64_t number) {
  struct piece piece;
  MPI_Info info;
  if (!reader_definition(reader, TRACE_INFO, number, &piece))
    return MPI_INFO_NULL;
  char *lines = strndup((const char *)piece.bytes, piece.length), *rest = lines;
  MPI_Info_create(&info);
  for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
    char *value = strchr(line, '=');
    if (value == NULL)
      continue;
    *value = '\0';
    MPI_Info_set(info, line, value + 1);
  }
  free(lines);
  return info;
}

static void free_info(MPI_Info *info) {
  if (*info != MPI_INFO_NULL)
    MPI_Info_free(info);
}

/* A communicator with the members of the program's one. Each opening gets a new one: two threads
 * may open files at once, which only communicators of their own allow. */
static int comm_of(struct replay_thread *self, const struct traced_call *call, MPI_Comm *comm) {
  int *ranks, size, code = MPI_SUCCESS, own;
  int count = reader_group(&self->reader, call->group, &ranks);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &own);
  bool is_world = count == size && !self->rank->plan->has_threads;
  for (int i = 0; i < count && is_world; i++)
    is_world = ranks[i] == i;
  if (is_world) {
    *comm = MPI_COMM_WORLD;
  } else if (count == 1 && ranks[0] == own) {
    *comm = MPI_COMM_SELF;
  } else {
    MPI_Group all, group;
    uint64_t key = self->rank->plan->openings[call->opening].key;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    code = MPI_Group_incl(all, count, ranks, &group);
    if (code == MPI_SUCCESS) {
      code = MPI_Comm_create_group(MPI_COMM_WORLD, group, (int)(key >> 20 & 0x3fff), comm);
      MPI_Group_free(&group);
    }
    MPI_Group_free(&all);
  }
  free(ranks);
  return code;
}

static void free_comm(MPI_Comm *comm) {
  if (*comm != MPI_COMM_WORLD && *comm != MPI_COMM_SELF)
    MPI_Comm_free(comm);
}

/* A prefix is the name of a file system, as ROMIO takes it ("ufs:"). */
static char *target_of(const struct replay_thread *self, int64_t prefix, int64_t path) {
  char *before = reader_text(&self->reader, prefix), *text = reader_text(&self->reader, path);
  char *target = options_target(self->rank->options, text), *name = NULL;
  if (strchr(before, '/') != NULL)
    before[0] = '\0';
  if (target == NULL || asprintf(&name, "%s%s", before, target) < 0)
    abort(); /* every path of the trace was looked at before the first call */
  free(before);
  free(text);
  free(target);
  return name;
}

/* An exclusive open that succeeded found no file: the program had removed it by other means. */
static void remove_existing_target(const struct replay_thread *self, const struct traced_call *call,
                                   MPI_Comm comm) {
  int rank;
  MPI_Comm_rank(comm, &rank);
  if (rank != 0 || (call->mode & MPI_MODE_EXCL) == 0 || call->code != TRACE_SUCCESS ||
      call->bytes_before != TRACE_ABSENT)
    return;
  char *target = target_of(self, -1, call->path);
  unlink(target);
  free(target);
}

static int issue_open(struct replay_thread *self, const struct traced_call *call) {
  struct handle *handle = &self->rank->handles[call->opening];
  MPI_Comm comm;
  if (!self->rank->plan->openings[call->opening].is_issued)
    return NOT_ISSUED;
  int code = comm_of(self, call, &comm);
  if (code != MPI_SUCCESS)
    return code;
  MPI_Info info = info_of(&self->reader, call->info);
  char *name = target_of(self, call->prefix, call->path);
  remove_existing_target(self, call, comm);
  code = MPI_File_open(comm, name, (int)call->mode, info, &handle->file);
  handle->is_open = code == MPI_SUCCESS;
  free(name);
  free_info(&info);
  free_comm(&comm);
  return code;
}

static int issue_view(struct replay_thread *self, const struct traced_call *call, MPI_File file) {
  const struct built_type *element = types_get(&self->types, call->element);
  MPI_Datatype element_type = element != NULL ? element->type : MPI_DATATYPE_NULL;
  const struct built_type *type = types_get(&self->types, call->type);
  if (element == NULL || type == NULL)
    return NOT_ISSUED;
  char *representation = reader_text(&self->reader, call->text);
  MPI_Info info = info_of(&self->reader, call->info);
  int code =
      MPI_File_set_view(file, call->displacement, element_type, type->type, representation, info);
  free_info(&info);
  free(representation);
  return code;
}

static int issue_set_info(struct replay_thread *self, const struct traced_call *call,
                          MPI_File file) {
  MPI_Info info = info_of(&self->reader, call->info);
  int code = MPI_File_set_info(file, info);
  free_info(&info);
  return code;
}

/* One that failed is left out: ranks without collective calls are not kept in step, so it may come
 * after another rank has made the file, and would take it away. */
static int issue_delete(const struct replay_thread *self, const struct traced_call *call) {
  if (call->code != TRACE_SUCCESS)
    return SKIPPED;
  char *target = target_of(self, -1, call->path);
  MPI_Info info = info_of(&self->reader, call->info);
  int code = MPI_File_delete(target, info);
  free_info(&info);
  free(target);
  return code;
}

static int issue_complete(struct replay_thread *self, const struct traced_call *call) {
  struct fields fields = fields_of(call->completed);
  int64_t last = call->completed_base;
  int code = MPI_SUCCESS;
  for (int64_t i = 0; i < call->completed_count; i++) {
    last += fields_take_signed(&fields);
    if (last >= 0 && last < self->rank->plan->request_count &&
        MPI_Wait(&self->rank->requests[last], MPI_STATUS_IGNORE) != MPI_SUCCESS)
      code = MPI_ERR_IO;
  }
  return code;
}

static int whence_of(int64_t code) {
  return code == 0 ? MPI_SEEK_SET : code == 1 ? MPI_SEEK_CUR : MPI_SEEK_END;
}

static int issue_on_file(struct replay_thread *self, const struct traced_call *call,
                         struct handle *handle) {
  MPI_File file = handle->file;
  MPI_Offset size;
  switch (call->tag) {
  case TRACE_CLOSE:
    handle->is_open = false;
    return MPI_File_close(&handle->file);
  case TRACE_SET_VIEW:
    return issue_view(self, call, file);
  case TRACE_SET_SIZE:
    return MPI_File_set_size(file, call->number);
  case TRACE_PREALLOCATE:
    return MPI_File_preallocate(file, call->number);
  case TRACE_GET_SIZE:
    return MPI_File_get_size(file, &size);
  case TRACE_SET_INFO:
    return issue_set_info(self, call, file);
  case TRACE_SET_ATOMICITY:
    return MPI_File_set_atomicity(file, (int)call->number);
  case TRACE_SEEK:
    return MPI_File_seek(file, call->number, whence_of(call->whence));
  case TRACE_SEEK_SHARED:
    return MPI_File_seek_shared(file, call->number, whence_of(call->whence));
  case TRACE_SYNC:
    return MPI_File_sync(file);
  default:
    return issue_data(self, call);
  }
}

int issue_file_call(struct replay_thread *self, const struct traced_call *call) {
  if (call->tag == TRACE_OPEN)
    return issue_open(self, call);
  if (call->tag == TRACE_DELETE)
    return issue_delete(self, call);
  if (call->tag == TRACE_COMPLETE)
    return issue_complete(self, call);
  struct handle *handle = &self->rank->handles[call->opening];
  const struct planned_opening *planned = &self->rank->plan->openings[call->opening];
  bool is_beyond = is_collective(call) && handle->collectives++ >= planned->collectives_max;
  return is_beyond || !handle->is_open ? NOT_ISSUED : issue_on_file(self, call, handle);
}
