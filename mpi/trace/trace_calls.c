/* The records of calls. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "base/library.h"
#include "record/descriptors.h"
#include "trace/trace_file.h"
#include "trace/trace_map.h"
#include "trace/trace_record.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct traced_opening {
  int64_t number; /* in the order of the records of opening */
  struct trace_expected data[DIRECTIONS];
};

struct traced_file {
  int64_t path; /* text */
  struct trace_expected data[DIRECTIONS];
};

static struct trace_map openings_by_handle, files_by_record;
static struct traced_opening openings[TRACE_MAP_ENTRIES_MAX];
static struct traced_file files[TRACE_MAP_ENTRIES_MAX];
static int files_used;
static int64_t opening_count, request_count, last_opening, last_path;

/* A raw system call, which no hook counts and no emulation delays. The path "" means the descriptor
 * itself. */
static int64_t size_of(int directory, const char *path) {
  struct statx now;
  long code = syscall(SYS_statx, directory, path, AT_EMPTY_PATH, STATX_SIZE, &now);
  return code == 0 ? (int64_t)now.stx_size : TRACE_ABSENT;
}

int64_t trace_size_before(const struct call *call, const char *path, MPI_Comm comm) {
  int rank = -1;
  if (!trace_is_on || call->file == NULL || library.Comm_rank(comm, &rank) != MPI_SUCCESS ||
      rank != 0)
    return TRACE_NOT_LOOKED;
  return size_of(AT_FDCWD, path);
}

static struct trace_head head_of(const struct call *call, int tag, int code) {
  return (struct trace_head){.tag = tag,
                             .code = code,
                             .overlap = trace_call_count() - call->trace_call_count,
                             .start_s = call->start_s,
                             .end_s = call->end_s};
}

static bool is_traced(const struct call *call) { return trace_is_on && call->file != NULL; }

static bool keep(const struct trace_record *record) {
  return trace_append(record->bytes, record->length);
}

/* A record holds the number of a definition plus one: 0 stands for none. */
static uint64_t reference(int64_t number) { return (uint64_t)(number + 1); }

static void add_number(struct trace_record *record, int64_t number) {
  trace_add(record, reference(number));
}

static struct traced_opening *opening_of(MPI_File handle) {
  int64_t at = trace_map_find(&openings_by_handle, TRACE_KEY(handle));
  return at >= 0 ? &openings[at] : NULL;
}

/* Places for the state of open files; a place is free again when its file is closed. */
static int free_places[TRACE_MAP_ENTRIES_MAX], free_count, places_used;

static void remember_opening(MPI_File handle, int64_t number) {
  int place = free_count > 0                        ? free_places[--free_count]
              : places_used < TRACE_MAP_ENTRIES_MAX ? places_used++
                                                    : -1;
  if (place < 0 || !trace_map_set(&openings_by_handle, TRACE_KEY(handle), place))
    return; /* its calls are lost, and counted */
  openings[place] = (struct traced_opening){.number = number};
}

/* The prefix of the path, as in "ufs:/scratch/file". */
static int64_t define_prefix(const char *name, const struct file *file) {
  char prefix[32];
  size_t whole = strlen(name), own = strlen(file->name);
  if (whole <= own || whole - own >= sizeof prefix)
    return -1;
  memcpy(prefix, name, whole - own);
  prefix[whole - own] = '\0';
  return trace_define_text(prefix);
}

void trace_open(const struct call *call, MPI_Comm comm, const char *name, int mode, MPI_Info info,
                MPI_File handle, int64_t size_before, int code) {
  if (!is_traced(call))
    return;
  struct trace_record record;
  int64_t path = trace_define_text(call->file->path), prefix = define_prefix(name, call->file);
  int64_t group = trace_define_group(comm), hints = trace_define_info(info);
  if (path < 0 || group < 0 || !trace_enter()) {
    trace_count_lost();
    return;
  }
  trace_add_head(&record, head_of(call, TRACE_OPEN, code));
  add_number(&record, path);
  add_number(&record, prefix);
  add_number(&record, group);
  add_number(&record, hints);
  trace_add(&record, (uint64_t)mode);
  trace_add_signed(&record, size_before);
  if (keep(&record)) {
    if (code == MPI_SUCCESS)
      remember_opening(handle, opening_count);
    opening_count++;
  }
  trace_leave();
}

int64_t trace_drop_handle(const struct call *call, MPI_File handle) {
  if (!is_traced(call) || !trace_enter())
    return -1;
  int64_t number = -1;
  int64_t place = trace_map_remove(&openings_by_handle, TRACE_KEY(handle));
  if (place >= 0) {
    number = openings[place].number;
    free_places[free_count++] = (int)place;
  }
  trace_leave();
  return number;
}

/* Adds the number of the opening, if it is not that of the record before. */
static int flag_of_opening(int64_t number) { return number != last_opening ? TRACE_OTHER_FILE : 0; }

static void add_opening(struct trace_record *record, int64_t number) {
  if (number != last_opening)
    trace_add(record, (uint64_t)number);
  last_opening = number;
}

/* Begins the record of a call on an open file; false, and counted, if there can be none. The lock
 * is held then. */
static bool begin(struct trace_record *record, const struct call *call, int64_t number, int tag,
                  int code) {
  struct trace_head head = head_of(call, tag, code);
  if (number < 0) {
    trace_count_lost();
    return false;
  }
  head.flags = flag_of_opening(number);
  trace_add_head(record, head);
  add_opening(record, number);
  return true;
}

static bool enter_call(const struct call *call) {
  if (!is_traced(call))
    return false;
  if (trace_enter())
    return true;
  trace_count_lost();
  return false;
}

static int64_t number_of(MPI_File handle) {
  struct traced_opening *opening = opening_of(handle);
  return opening != NULL ? opening->number : -1;
}

void trace_close(const struct call *call, int64_t opening, int code) {
  struct trace_record record;
  if (!enter_call(call))
    return;
  if (begin(&record, call, opening, TRACE_CLOSE, code) && keep(&record))
    trace_file_flush();
  trace_leave();
}

/* Records a call on an open file with its fields, each encoded as the reader decodes it. */
static void record_fields(const struct call *call, MPI_File handle, int tag, int code,
                          const uint64_t *fields, size_t count) {
  struct trace_record record;
  if (!enter_call(call))
    return;
  if (begin(&record, call, number_of(handle), tag, code)) {
    for (size_t i = 0; i < count; i++)
      trace_add(&record, fields[i]);
    keep(&record);
  }
  trace_leave();
}

void trace_number(const struct call *call, MPI_File handle, enum trace_tag tag, int64_t number,
                  int code) {
  const uint64_t fields[] = {trace_fold(number)};
  record_fields(call, handle, tag, code, fields, 1);
}

void trace_seek(const struct call *call, MPI_File handle, enum trace_tag tag, MPI_Offset offset,
                int whence, int code) {
  const uint64_t fields[] = {trace_fold(offset), whence == MPI_SEEK_SET   ? 0
                                                 : whence == MPI_SEEK_CUR ? 1
                                                                          : 2};
  record_fields(call, handle, tag, code, fields, 2);
}

void trace_set_info(const struct call *call, MPI_File handle, MPI_Info info, int code) {
  if (!is_traced(call))
    return;
  const uint64_t fields[] = {reference(trace_define_info(info))};
  record_fields(call, handle, TRACE_SET_INFO, code, fields, 1);
}

void trace_view(const struct call *call, MPI_File handle, MPI_Offset displacement,
                MPI_Datatype element, MPI_Datatype type, const char *representation, MPI_Info info,
                int code) {
  if (!is_traced(call) || code != MPI_SUCCESS) /* it may be the types that are wrong */
    return;
  int64_t element_number = trace_define_type(element), type_number = trace_define_type(type);
  int64_t text = trace_define_text(representation), hints = trace_define_info(info);
  if (element_number < 0 || type_number < 0) {
    trace_count_lost();
    return;
  }
  const uint64_t fields[] = {trace_fold(displacement), reference(element_number),
                             reference(type_number), reference(text), reference(hints)};
  record_fields(call, handle, TRACE_SET_VIEW, code, fields, 5);
}

void trace_delete(double start_s, const char *path, MPI_Info info, int code) {
  struct trace_record record;
  if (!trace_is_on)
    return;
  char whole[2 * PATH_MAX] = "";
  if (path[0] != '/' && getcwd(whole, PATH_MAX) != NULL)
    strcat(whole, "/");
  strncat(whole, strncmp(path, "./", 2) == 0 ? path + 2 : path, PATH_MAX - 1);
  int64_t text = trace_define_text(whole), hints = trace_define_info(info);
  if (text < 0 || !trace_enter()) {
    trace_count_lost();
    return;
  }
  trace_add_head(&record,
                 (struct trace_head){
                     .tag = TRACE_DELETE, .code = code, .start_s = start_s, .end_s = clock_s()});
  add_number(&record, text);
  add_number(&record, hints);
  keep(&record);
  trace_leave();
}

/* The fields that are not as expected, and their flags. */
static int flags_of_access(const struct trace_expected *expected, const struct trace_access *access,
                           int64_t type) {
  return (access->count != expected->count ? TRACE_OTHER_COUNT : 0) |
         (type != expected->type ? TRACE_OTHER_TYPE : 0) |
         (access->place == TRACE_AT && access->offset != expected->offset + expected->step
              ? TRACE_OTHER_OFFSET
              : 0);
}

static void add_access(struct trace_record *record, struct trace_expected *expected,
                       const struct trace_access *access, int64_t type, int flags) {
  if (flags & TRACE_OTHER_COUNT)
    trace_add_signed(record, access->count);
  if (flags & TRACE_OTHER_TYPE)
    add_number(record, type);
  if (flags & TRACE_OTHER_OFFSET)
    trace_add_signed(record, access->offset - expected->offset - expected->step);
  if (access->place == TRACE_AT) {
    expected->step = access->offset - expected->offset;
    expected->offset = access->offset;
  }
  expected->count = access->count;
  expected->type = type;
}

static void record_data(const struct call *call, MPI_File handle, const struct trace_access *access,
                        int64_t type, int code) {
  struct trace_record record;
  struct traced_opening *opening = opening_of(handle);
  if (opening == NULL) {
    trace_count_lost();
    return;
  }
  bool is_end = call->kind == SPLIT_END;
  struct trace_expected *expected = &opening->data[call->direction];
  int tag = TRACE_DATA + trace_data_code(call->direction, access->place, call->kind);
  struct trace_head head = head_of(call, tag, code);
  head.flags =
      flag_of_opening(opening->number) | (is_end ? 0 : flags_of_access(expected, access, type));
  trace_add_head(&record, head);
  add_opening(&record, opening->number);
  if (!is_end)
    add_access(&record, expected, access, type, head.flags);
  if (keep(&record) && access->request != NULL) {
    if (code == MPI_SUCCESS)
      trace_request(*access->request, request_count);
    request_count++;
  }
}

void trace_data(const struct call *call, MPI_File handle, struct trace_access access, int code) {
  if (!enter_call(call))
    return;
  int64_t type = call->kind == SPLIT_END ? -1 : trace_known_type(access.type);
  if (type < 0 && call->kind != SPLIT_END) {
    trace_leave();
    type = code == MPI_SUCCESS ? trace_define_type(access.type) : -1;
    if (type < 0 && code == MPI_SUCCESS) {
      trace_count_lost();
      return;
    }
    if (!enter_call(call))
      return;
  }
  record_data(call, handle, &access, type, code);
  trace_leave();
}

/* What is expected is kept by path, as the reader keeps it: the path may be open in several layers.
 */
static struct traced_file *traced_file_of(struct file *file) {
  int64_t at = trace_map_find(&files_by_record, TRACE_KEY(file));
  if (at >= 0)
    return &files[at];
  int64_t path = trace_define(TRACE_TEXT, (const uint8_t *)file->path, strlen(file->path));
  for (at = 0; at < files_used && files[at].path != path;)
    at++;
  if (path < 0 || at == TRACE_MAP_ENTRIES_MAX ||
      !trace_map_set(&files_by_record, TRACE_KEY(file), at))
    return NULL;
  if (at == files_used)
    files[files_used++] = (struct traced_file){.path = path};
  return &files[at];
}

static void count_lost_call(const struct file *file) {
  if (file->layer == LAYER_MPIIO)
    trace_count_lost_system();
  else
    trace_count_lost();
}

/* A signal handler may interrupt the trace itself. */
static bool enter_file(const struct file *file) {
  if (!trace_is_on)
    return false;
  if (trace_enter())
    return true;
  count_lost_call(file);
  return false;
}

static int tag_of(const struct file *file, enum trace_system what) {
  static const int firsts[LAYERS] = {TRACE_SYSTEM_WITHIN, TRACE_SYSTEM, TRACE_STREAM};
  return firsts[file->layer] + (int)what;
}

/* NULL, and the call is counted as lost, if there can be no record. */
static struct traced_file *begin_system(struct trace_record *record, struct file *file,
                                        struct trace_head head) {
  struct traced_file *traced = traced_file_of(file);
  if (traced == NULL) {
    count_lost_call(file);
    return NULL;
  }
  head.flags |= traced->path != last_path ? TRACE_OTHER_FILE : 0;
  trace_add_head(record, head);
  if (traced->path != last_path)
    trace_add(record, (uint64_t)traced->path);
  last_path = traced->path;
  return traced;
}

static void record_transfer(struct file *file, const struct transfer *transfer, double elapsed_s) {
  struct trace_record record;
  struct traced_file *traced = traced_file_of(file);
  int64_t asked = transfer->asked > 0   ? (int64_t)transfer->asked
                  : transfer->moved > 0 ? transfer->moved
                                        : 0;
  bool is_read = transfer->direction == READING;
  struct trace_access access = {.place = TRACE_AT, .offset = transfer->offset, .count = asked};
  struct trace_head head = {.tag = tag_of(file, is_read ? TRACE_SYSTEM_READ : TRACE_SYSTEM_WRITE),
                            .code = transfer->moved < 0,
                            .start_s = transfer->start_s,
                            .end_s = transfer->start_s + elapsed_s};
  if (traced == NULL) {
    count_lost_call(file);
    return;
  }
  struct trace_expected *expected = &traced->data[transfer->direction];
  int flags = flags_of_access(expected, &access, 0) |
              (transfer->moved >= 0 && transfer->moved != asked ? TRACE_SHORT : 0);
  head.flags = flags;
  begin_system(&record, file, head);
  add_access(&record, expected, &access, 0, flags);
  if (flags & TRACE_SHORT)
    trace_add(&record, (uint64_t)transfer->moved);
  keep(&record);
}

void trace_system_data(struct file *file, const struct transfer *transfer, double elapsed_s) {
  if (!enter_file(file))
    return;
  record_transfer(file, transfer, elapsed_s);
  trace_leave();
}

void trace_system_other(struct file *file, enum trace_system what, int64_t argument,
                        double elapsed_s) {
  struct trace_record record;
  if (!enter_file(file))
    return;
  double end_s = clock_s();
  struct trace_head head = {.tag = tag_of(file, what),
                            .code = what == TRACE_SYSTEM_SEEK && argument < 0,
                            .start_s = end_s - elapsed_s,
                            .end_s = end_s};
  if (begin_system(&record, file, head) != NULL) {
    trace_add_signed(&record, argument);
    keep(&record);
  }
  trace_leave();
}

int64_t trace_size_before_open(int directory, const char *path) {
  if (!trace_is_on || call_current() != NULL)
    return TRACE_NOT_LOOKED;
  int kept = errno;
  int64_t bytes = size_of(directory, path);
  errno = kept;
  return bytes;
}

static void record_open(struct file *file, int flags, int permissions, int64_t bytes_before,
                        struct trace_head head) {
  struct trace_record record;
  head.tag = tag_of(file, TRACE_SYSTEM_OPEN);
  if (begin_system(&record, file, head) == NULL)
    return;
  trace_add(&record, (uint64_t)flags);
  trace_add(&record, (uint64_t)permissions);
  trace_add_signed(&record, bytes_before);
  keep(&record);
}

void trace_system_open_already(void) {
  for (int at = 0; at <= descriptors_highest(); at++) {
    struct file *file = descriptors_find(at);
    int flags = file != NULL ? fcntl(at, F_GETFL) : -1;
    if (flags < 0 || !enter_file(file))
      continue;
    double now_s = clock_s();
    record_open(file, flags, 0, size_of(at, ""),
                (struct trace_head){.start_s = now_s, .end_s = now_s});
    trace_leave();
  }
}

void trace_system_open(struct file *file, const struct opening *opening) {
  if (!enter_file(file))
    return;
  record_open(file, opening->flags, (int)opening->permissions, opening->bytes_before,
              (struct trace_head){.code = opening->descriptor < 0,
                                  .start_s = opening->start_s,
                                  .end_s = clock_s()});
  trace_leave();
}
