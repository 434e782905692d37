#define _GNU_SOURCE
#include "reader.h"

#include "memory.h"
#include "raw_open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RANKS_MAX = 1 << 24, THREADS_MAX = 1 << 16 };

bool is_data(int tag) { return tag >= TRACE_DATA; }

bool is_system_call(int tag) { return tag >= TRACE_SYSTEM && tag < TRACE_DATA; }

struct fields fields_of(struct piece piece) {
  return (struct fields){piece.bytes, piece.bytes + piece.length, false};
}

uint64_t fields_take(struct fields *fields) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && fields->at < fields->end; shift += 7) {
    uint8_t byte = *fields->at++;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80)
      return value;
  }
  fields->is_bad = true;
  return 0;
}

int64_t fields_take_signed(struct fields *fields) { return trace_unfold(fields_take(fields)); }

static bool complain(struct reader *reader, const char *what) {
  snprintf(reader->problem, sizeof reader->problem, "%s: %s, at byte %zu", reader->path, what,
           reader->at);
  return false;
}

static uint32_t little(const uint8_t *bytes) {
  return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
         (uint32_t)bytes[3] << 24;
}

/* True if a whole block begins here. A trace without its trailer ends where the last one ends. */
static bool enter_block(struct reader *reader) {
  size_t left = reader->length - reader->at;
  if (left == 0 && reader->trailer.is_there)
    return false;
  if (left == 0)
    return complain(reader, "the trace has no end: its program was killed, or still runs");
  if (left < TRACE_BLOCK_HEAD_BYTES)
    return complain(reader, "the trace is cut off");
  const uint8_t *head = reader->bytes + reader->at;
  uint32_t length = little(head), checksum = little(head + 4);
  if (length > left - TRACE_BLOCK_HEAD_BYTES)
    return complain(reader, "the trace is cut off");
  if (length == 0)
    return complain(reader, "the trace is damaged");
  if (trace_checksum(head + TRACE_BLOCK_HEAD_BYTES, length) != checksum)
    return complain(reader, "the trace is damaged");
  reader->at += TRACE_BLOCK_HEAD_BYTES;
  reader->block_end = reader->at + length;
  return true;
}

static void take_string(struct fields *fields, char *to, size_t room) {
  size_t length = fields_take(fields);
  if (length > (size_t)(fields->end - fields->at)) {
    fields->is_bad = true;
    return;
  }
  snprintf(to, room, "%.*s", (int)length, (const char *)fields->at);
  fields->at += length;
}

static struct fields rest_of_block(const struct reader *reader) {
  return (struct fields){reader->bytes + reader->at, reader->bytes + reader->block_end, false};
}

static bool read_header(struct reader *reader) {
  struct header *header = &reader->header;
  if (!enter_block(reader))
    return false;
  struct fields fields = rest_of_block(reader);
  if (fields_take(&fields) != TRACE_HEADER)
    return complain(reader, "the header is missing");
  header->version = (int64_t)fields_take(&fields);
  if (header->version != TRACE_VERSION)
    return complain(reader, "the trace is of another version of Forebay");
  int64_t *numbers[] = {&header->started_unix_ms, &header->pid,           &header->rank,
                        &header->ranks,           &header->begun_unix_ns, &header->tick_ns};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    *numbers[i] = (int64_t)fields_take(&fields);
  take_string(&fields, header->mpi, sizeof header->mpi);
  take_string(&fields, header->program, sizeof header->program);
  take_string(&fields, header->host, sizeof header->host);
  reader->at = reader->block_end;
  bool is_good = !fields.is_bad && header->ranks > 0 && header->ranks <= RANKS_MAX;
  return is_good || complain(reader, "the header is damaged");
}

/* Does not wait at a fifo that has the name of a trace. */
static bool map_file(struct reader *reader) {
  struct stat now;
  int descriptor = raw_open(reader->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  bool is_found = descriptor >= 0 && fstat(descriptor, &now) == 0;
  if (is_found && !S_ISREG(now.st_mode)) {
    close(descriptor);
    snprintf(reader->problem, sizeof reader->problem, "%s: this is no regular file", reader->path);
    return false;
  }
  if (is_found && now.st_size > 0) {
    reader->length = (size_t)now.st_size;
    reader->bytes = mmap(NULL, reader->length, PROT_READ, MAP_PRIVATE, descriptor, 0);
    is_found = reader->bytes != MAP_FAILED;
  }
  if (!is_found)
    snprintf(reader->problem, sizeof reader->problem, "%s: %s", reader->path, strerror(errno));
  if (descriptor >= 0)
    close(descriptor);
  if (is_found && (reader->length < TRACE_MAGIC_BYTES ||
                   memcmp(reader->bytes, TRACE_MAGIC, TRACE_MAGIC_BYTES) != 0))
    return complain(reader, "this is no trace");
  reader->at = TRACE_MAGIC_BYTES;
  return is_found;
}

bool reader_open(struct reader *reader, const char *directory, int rank) {
  memset(reader, 0, sizeof *reader);
  int length = snprintf(reader->path, sizeof reader->path, "%s/" TRACE_FILE_NAME, directory, rank);
  if (length >= (int)sizeof reader->path) {
    snprintf(reader->problem, sizeof reader->problem, "%.99s...: the path is too long", directory);
    return false;
  }
  if (!map_file(reader) || !read_header(reader))
    return false;
  if (reader->header.rank != rank)
    return complain(reader, "the trace is of another rank");
  reader_rewind(reader);
  return true;
}

void reader_close(struct reader *reader) {
  if (reader->length > 0)
    munmap((void *)reader->bytes, reader->length);
  for (int kind = 0; kind < TRACE_DEFINITIONS; kind++)
    free(reader->definitions[kind].items);
  free(reader->openings);
  free(reader->files);
}

void reader_rewind(struct reader *reader) {
  reader->at = TRACE_MAGIC_BYTES;
  for (int kind = 0; kind < TRACE_DEFINITIONS; kind++)
    reader->definitions[kind].count = 0;
  reader->opening_count = 0;
  if (reader->file_room > 0)
    memset(reader->files, 0, reader->file_room * sizeof *reader->files);
  reader->last_end = reader->last_thread = reader->last_opening = reader->last_path = 0;
  reader->requests = reader->last_completed = reader->index = 0;
  reader->trailer = (struct trailer){0};
  reader->problem[0] = '\0';
  if (enter_block(reader)) /* the header was read when it was opened */
    reader->at = reader->block_end;
}

static bool take_definition(struct reader *reader, struct fields *fields, int kind) {
  struct definitions *all = &reader->definitions[kind];
  size_t length = fields_take(fields);
  if (length > (size_t)(fields->end - fields->at))
    return false;
  all->items = memory_grown(all->items, &all->room, all->count + 1, sizeof *all->items);
  all->items[all->count++] = (struct piece){fields->at, length};
  fields->at += length;
  return true;
}

static void take_trailer(struct reader *reader, struct fields *fields) {
  struct trailer *trailer = &reader->trailer;
  trailer->is_there = true;
  int64_t *numbers[] = {&trailer->end, &trailer->calls, &trailer->lost_calls,
                        &trailer->lost_system_calls, &trailer->stopped};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    *numbers[i] = fields_take_signed(fields);
}

static int64_t take_number(struct fields *fields) { return (int64_t)fields_take(fields) - 1; }

static int take_head(struct reader *reader, struct fields *fields, struct traced_call *call) {
  fields->is_bad |= fields->at >= fields->end;
  int flags = fields->is_bad ? 0 : *fields->at++;
  if (flags & TRACE_OTHER_THREAD)
    reader->last_thread = (int64_t)fields_take(fields);
  if (flags & TRACE_OVERLAP)
    call->overlap = (int64_t)fields_take(fields);
  if (flags & TRACE_FAILED)
    call->code = fields_take_signed(fields);
  call->thread = reader->last_thread;
  call->start = reader->last_end + fields_take_signed(fields);
  call->end = reader->last_end = call->start + (int64_t)fields_take(fields);
  call->index = reader->index;
  if (call->thread < 0 || call->thread >= THREADS_MAX || call->overlap < 0)
    fields->is_bad = true;
  reader->index += !trace_is_of_mpi(call->tag);
  return flags;
}

static void take_open(struct reader *reader, struct fields *fields, struct traced_call *call) {
  call->path = take_number(fields);
  call->prefix = take_number(fields);
  call->group = take_number(fields);
  call->info = take_number(fields);
  call->mode = (int64_t)fields_take(fields);
  call->bytes_before = fields_take_signed(fields);
  call->opening = (int64_t)reader->opening_count++;
  reader->openings = memory_grown(reader->openings, &reader->opening_room, reader->opening_count,
                                  sizeof *reader->openings);
  reader->openings[call->opening] = (struct predictions){0};
}

static void take_access(struct fields *fields, struct trace_expected *expected, int flags,
                        bool has_offset, struct traced_call *call) {
  if (flags & TRACE_OTHER_COUNT)
    expected->count = fields_take_signed(fields);
  if (flags & TRACE_OTHER_TYPE)
    expected->type = take_number(fields);
  int64_t offset = expected->offset + expected->step;
  if (flags & TRACE_OTHER_OFFSET)
    offset += fields_take_signed(fields);
  if (has_offset) {
    expected->step = offset - expected->offset;
    expected->offset = offset;
  }
  call->count = expected->count;
  call->type = expected->type;
  call->offset = offset;
}

static void take_data(struct reader *reader, struct fields *fields, int flags,
                      struct traced_call *call) {
  int code = call->tag - TRACE_DATA;
  call->kind = code % TRACE_KINDS;
  call->place = code / TRACE_KINDS % TRACE_PLACES;
  call->direction = code / TRACE_KINDS / TRACE_PLACES;
  call->request = -1;
  if (call->kind != SPLIT_END)
    take_access(fields, &reader->openings[call->opening].data[call->direction], flags,
                call->place == TRACE_AT, call);
  if (call->kind == NONBLOCKING || call->kind == NONBLOCKING_COLLECTIVE)
    call->request = reader->requests++;
}

static void take_system(struct reader *reader, struct fields *fields, int flags,
                        struct traced_call *call) {
  enum trace_system what = (enum trace_system)(call->tag & 0x0f);
  if (flags & TRACE_OTHER_FILE)
    reader->last_path = (int64_t)fields_take(fields);
  call->path = reader->last_path;
  if (call->path < 0 || (size_t)call->path >= reader->definitions[TRACE_TEXT].count) {
    fields->is_bad = true;
    return;
  }
  reader->files = memory_grown(reader->files, &reader->file_room, (size_t)call->path + 1,
                               sizeof *reader->files);
  if (what == TRACE_SYSTEM_READ || what == TRACE_SYSTEM_WRITE) {
    call->direction = what == TRACE_SYSTEM_WRITE;
    take_access(fields, &reader->files[call->path].data[call->direction], flags, true, call);
    call->moved = flags & TRACE_SHORT ? (int64_t)fields_take(fields) : call->count;
  } else if (what == TRACE_SYSTEM_OPEN) {
    call->flags = (int64_t)fields_take(fields);
    call->permissions = (int64_t)fields_take(fields);
    call->bytes_before = fields_take_signed(fields);
  } else {
    call->number = fields_take_signed(fields);
  }
}

static void take_view(struct fields *fields, struct traced_call *call) {
  call->displacement = fields_take_signed(fields);
  call->element = take_number(fields);
  call->type = take_number(fields);
  call->text = take_number(fields);
  call->info = take_number(fields);
}

static void take_completed(struct reader *reader, struct fields *fields, struct traced_call *call) {
  call->completed_count = (int64_t)fields_take(fields);
  const uint8_t *begin = fields->at;
  call->completed_base = reader->last_completed;
  for (int64_t i = 0; i < call->completed_count && !fields->is_bad; i++)
    reader->last_completed += fields_take_signed(fields);
  call->completed = (struct piece){begin, (size_t)(fields->at - begin)};
}

static void take_own_fields(struct reader *reader, struct fields *fields, int flags,
                            struct traced_call *call) {
  if (is_data(call->tag)) {
    take_data(reader, fields, flags, call);
    return;
  }
  switch (call->tag) {
  case TRACE_CLOSE:
    break;
  case TRACE_SET_VIEW:
    take_view(fields, call);
    break;
  case TRACE_SET_INFO:
    call->info = take_number(fields);
    break;
  case TRACE_SEEK:
  case TRACE_SEEK_SHARED:
    call->number = fields_take_signed(fields);
    call->whence = (int64_t)fields_take(fields);
    break;
  default:
    call->number = fields_take_signed(fields);
  }
}

/* A call on an open file, which the record of its opening precedes. */
static void take_on_file(struct reader *reader, struct fields *fields, int flags,
                         struct traced_call *call) {
  if (flags & TRACE_OTHER_FILE)
    reader->last_opening = (int64_t)fields_take(fields);
  call->opening = reader->last_opening;
  if ((size_t)call->opening >= reader->opening_count)
    fields->is_bad = true;
  else
    take_own_fields(reader, fields, flags, call);
}

static void take_call(struct reader *reader, struct fields *fields, struct traced_call *call) {
  int flags = take_head(reader, fields, call);
  if (call->tag == TRACE_OPEN)
    take_open(reader, fields, call);
  else if (call->tag == TRACE_COMPLETE)
    take_completed(reader, fields, call);
  else if (call->tag == TRACE_DELETE) {
    call->path = take_number(fields);
    call->info = take_number(fields);
  } else if (is_system_call(call->tag))
    take_system(reader, fields, flags, call);
  else
    take_on_file(reader, fields, flags, call);
}

/* Takes one record; true if it is a call. */
static bool take_record(struct reader *reader, struct traced_call *call) {
  struct fields fields = rest_of_block(reader);
  *call = (struct traced_call){.tag = *fields.at++, .opening = -1, .path = -1, .request = -1};
  bool is_call = call->tag >= TRACE_OPEN;
  if (is_call)
    take_call(reader, &fields, call);
  else if (call->tag >= TRACE_DEFINE && call->tag < TRACE_DEFINE + TRACE_DEFINITIONS)
    fields.is_bad = !take_definition(reader, &fields, call->tag - TRACE_DEFINE);
  else if (call->tag == TRACE_TRAILER)
    take_trailer(reader, &fields);
  else
    fields.is_bad = true;
  if (fields.is_bad)
    return complain(reader, "a record makes no sense");
  reader->at = (size_t)(fields.at - reader->bytes);
  return is_call;
}

bool reader_next(struct reader *reader, struct traced_call *call) {
  while (reader->problem[0] == '\0') {
    if (reader->at >= reader->block_end && !enter_block(reader))
      return false;
    if (take_record(reader, call))
      return true;
  }
  return false;
}

bool reader_definition(const struct reader *reader, enum trace_definition kind, int64_t number,
                       struct piece *piece) {
  const struct definitions *all = &reader->definitions[kind];
  if (number < 0 || (size_t)number >= all->count)
    return false;
  *piece = all->items[number];
  return true;
}

char *reader_text(const struct reader *reader, int64_t number) {
  struct piece piece = {0};
  reader_definition(reader, TRACE_TEXT, number, &piece);
  char *text = strndup(piece.length > 0 ? (const char *)piece.bytes : "", piece.length);
  if (text == NULL)
    abort();
  return text;
}

int reader_group(const struct reader *reader, int64_t number, int **ranks) {
  struct piece piece;
  size_t room = 0;
  int count = 0;
  int64_t end = 0;
  *ranks = NULL;
  if (!reader_definition(reader, TRACE_GROUP, number, &piece))
    return -1;
  for (struct fields fields = fields_of(piece); fields.at < fields.end && !fields.is_bad;) {
    int64_t first = end + fields_take_signed(&fields), length = (int64_t)fields_take(&fields);
    if (length < 0 || length > RANKS_MAX - count)
      return -1;
    *ranks = memory_grown(*ranks, &room, (size_t)(count + length), sizeof **ranks);
    for (int64_t i = 0; i < length; i++)
      (*ranks)[count++] = (int)(first + i);
    end = first + length;
  }
  return count;
}
