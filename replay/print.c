#define _GNU_SOURCE
#include "print.h"

#include "reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNREADABLE_MAX = 16 };

static const char *const names[] = {
    "open",          "close", "set_view",    "set_size", "preallocate", "get_size", "set_info",
    "set_atomicity", "seek",  "seek_shared", "sync",     "delete",      "complete"};
static const char *const system_names[TRACE_SYSTEM_CALLS] = {
    "open", "close", "lock", "seek", "sync",     "truncate",
    "read", "write", "stat", "map",  "allocate", "duplicate"};
static const char *const combiners[TRACE_COMBINERS] = {
    "named",    "dup",           "contiguous",     "vector", "hvector",  "indexed",
    "hindexed", "indexed_block", "hindexed_block", "struct", "subarray", "darray",
    "f90_real", "f90_complex",   "f90_integer",    "resized"};

/* "iwrite_at_all", as MPI calls it after "MPI_File_". */
static void print_data_name(const struct traced_call *call) {
  bool is_nonblocking = call->kind == NONBLOCKING || call->kind == NONBLOCKING_COLLECTIVE;
  bool is_collective = call->kind != INDEPENDENT && call->kind != NONBLOCKING;
  const char *place = call->place == TRACE_AT ? "_at" : "";
  if (call->place == TRACE_SHARED)
    place = is_collective ? "_ordered" : "_shared";
  printf("%s%s%s%s%s", is_nonblocking ? "i" : "", call->direction == WRITING ? "write" : "read",
         place, is_collective && call->place != TRACE_SHARED ? "_all" : "",
         call->kind == SPLIT_COLLECTIVE ? "_begin"
         : call->kind == SPLIT_END      ? "_end"
                                        : "");
}

/* Control characters would act on the terminal. */
static void print_escaped(const char *text, size_t length) {
  for (size_t i = 0; i < length; i++)
    if (text[i] == '\n')
      fputs("\\n", stdout);
    else if ((unsigned char)text[i] < ' ' || text[i] == '\x7f')
      printf("\\x%02x", (unsigned)text[i]);
    else
      putchar(text[i]);
}

static void print_text(const struct reader *reader, int64_t number) {
  char *text = reader_text(reader, number);
  putchar('"');
  print_escaped(text, strlen(text));
  putchar('"');
  free(text);
}

static void print_list(struct fields *fields, const char *before) {
  uint64_t count = fields_take(fields);
  int64_t value = 0;
  printf("%s[", before);
  for (uint64_t i = 0; i < count && !fields->is_bad; i++)
    printf("%s%lld", i > 0 ? " " : "", (long long)(value += fields_take_signed(fields)));
  putchar(']');
}

static void print_type(struct piece piece) {
  struct fields fields = fields_of(piece);
  uint64_t combiner = fields_take(&fields);
  printf("%s", combiner < TRACE_COMBINERS ? combiners[combiner] : "?");
  if (combiner == TRACE_NAMED) {
    printf(" size=%llu", (unsigned long long)fields_take(&fields));
    putchar(' ');
    print_escaped((const char *)fields.at, (size_t)(fields.end - fields.at));
    return;
  }
  print_list(&fields, " ints=");
  print_list(&fields, " addresses=");
  print_list(&fields, " types=");
}

static void print_group(const struct reader *reader, int64_t number) {
  int *ranks, count = reader_group(reader, number, &ranks);
  for (int i = 0; i < count; i++)
    printf("%s%d", i > 0 ? " " : "", ranks[i]);
  free(ranks);
}

static void print_info(struct piece piece) {
  const char *line = (const char *)piece.bytes, *end = line + piece.length;
  while (line < end) {
    const char *next = memchr(line, '\n', (size_t)(end - line));
    size_t length = (size_t)((next != NULL ? next : end) - line);
    print_escaped(line, length);
    line += length;
    if (next != NULL) {
      putchar(' ');
      line++;
    }
  }
}

/* Those that came since the last call. */
static void print_definitions(const struct reader *reader, size_t printed[TRACE_DEFINITIONS]) {
  for (int kind = TRACE_INFO; kind < TRACE_DEFINITIONS; kind++)
    for (; printed[kind] < reader->definitions[kind].count; printed[kind]++) {
      struct piece piece = reader->definitions[kind].items[printed[kind]];
      static const char *const kinds[] = {"", "info", "group", "type"};
      printf("%lld %s %zu = ", (long long)reader->header.rank, kinds[kind], printed[kind]);
      if (kind == TRACE_TYPE)
        print_type(piece);
      else if (kind == TRACE_GROUP)
        print_group(reader, (int64_t)printed[kind]);
      else
        print_info(piece);
      putchar('\n');
    }
}

static void print_optional(const char *name, int64_t number) {
  if (number >= 0)
    printf(" %s=%lld", name, (long long)number);
}

static void print_data(const struct traced_call *call) {
  printf(" file=%lld", (long long)call->opening);
  if (call->kind == SPLIT_END)
    return;
  if (call->place == TRACE_AT)
    printf(" offset=%lld", (long long)call->offset);
  printf(" count=%lld type=%lld", (long long)call->count, (long long)call->type);
  print_optional("request", call->request);
}

static void print_system(const struct reader *reader, const struct traced_call *call) {
  int what = call->tag & 0x0f;
  putchar(' ');
  print_text(reader, call->path);
  if (what == TRACE_SYSTEM_READ || what == TRACE_SYSTEM_WRITE)
    printf(" offset=%lld asked=%lld moved=%lld", (long long)call->offset, (long long)call->count,
           (long long)call->moved);
  else if (what == TRACE_SYSTEM_OPEN)
    printf(" flags=%#llo before=%lld", (unsigned long long)call->flags,
           (long long)call->bytes_before);
  else
    printf(" %lld", (long long)call->number);
}

static void print_completed(const struct traced_call *call) {
  struct fields fields = fields_of(call->completed);
  int64_t request = call->completed_base;
  for (int64_t i = 0; i < call->completed_count; i++)
    printf(" request=%lld", (long long)(request += fields_take_signed(&fields)));
}

static void print_own(const struct reader *reader, const struct traced_call *call) {
  switch (call->tag) {
  case TRACE_OPEN:
    printf(" file=%lld ", (long long)call->opening);
    print_text(reader, call->path);
    printf(" group=%lld mode=%lld before=%lld", (long long)call->group, (long long)call->mode,
           (long long)call->bytes_before);
    print_optional("info", call->info);
    break;
  case TRACE_SET_VIEW:
    printf(" file=%lld displacement=%lld element=%lld type=%lld ", (long long)call->opening,
           (long long)call->displacement, (long long)call->element, (long long)call->type);
    print_text(reader, call->text);
    print_optional("info", call->info);
    break;
  case TRACE_DELETE:
    putchar(' ');
    print_text(reader, call->path);
    break;
  case TRACE_COMPLETE:
    print_completed(call);
    break;
  case TRACE_SEEK:
  case TRACE_SEEK_SHARED:
    printf(" file=%lld offset=%lld whence=%lld", (long long)call->opening, (long long)call->number,
           (long long)call->whence);
    break;
  default:
    printf(" file=%lld %lld", (long long)call->opening, (long long)call->number);
  }
}

static void print_call(const struct reader *reader, const struct traced_call *call) {
  double second = (double)reader->header.tick_ns * 1e-9;
  printf("%lld %lld %.7f %.7f ", (long long)reader->header.rank, (long long)call->thread,
         (double)call->start * second, (double)call->end * second);
  if (is_data(call->tag)) {
    print_data_name(call);
    print_data(call);
  } else if (is_system_call(call->tag)) {
    int what = call->tag & 0x0f;
    bool is_stream = (call->tag & 0xf0) == TRACE_STREAM;
    printf("%s%s",
           is_stream                    ? "stream "
           : trace_is_of_mpi(call->tag) ? "  system "
                                        : "system ",
           what < TRACE_SYSTEM_CALLS ? system_names[what] : "?");
    print_system(reader, call);
  } else {
    size_t what = (size_t)(call->tag - TRACE_OPEN);
    printf("%s", what < sizeof names / sizeof *names ? names[what] : "?");
    print_own(reader, call);
  }
  if (call->code != TRACE_SUCCESS)
    printf(" failed=%lld", (long long)call->code);
  putchar('\n');
}

static void print_header(const struct header *header) {
  fputs("# ", stdout);
  print_escaped(header->program, strlen(header->program));
  fputs(", ", stdout);
  print_escaped(header->mpi, strlen(header->mpi));
  printf(", %lld ranks, ", (long long)header->ranks);
  print_escaped(header->host, strlen(header->host));
  putchar('\n');
}

static bool print_rank(struct reader *reader) {
  size_t printed[TRACE_DEFINITIONS] = {0};
  struct traced_call call;
  while (reader_next(reader, &call)) {
    print_definitions(reader, printed);
    print_call(reader, &call);
  }
  const struct trailer *trailer = &reader->trailer;
  if (trailer->is_there)
    printf("%lld end %s calls=%lld lost=%lld lost_system=%lld\n", (long long)reader->header.rank,
           trailer->end == TRACE_FINALIZED ? "finalized" : "aborted", (long long)trailer->calls,
           (long long)trailer->lost_calls, (long long)trailer->lost_system_calls);
  if (reader->problem[0] != '\0')
    fprintf(stderr, "forebay-replay: %s\n", reader->problem);
  return reader->problem[0] == '\0';
}

bool print_trace(const char *directory) {
  bool is_good = true;
  int64_t ranks = 1, unreadable = 0;
  for (int rank = 0; rank < ranks && unreadable < UNREADABLE_MAX; rank++) {
    struct reader reader;
    if (reader_open(&reader, directory, rank)) {
      if (rank == 0)
        print_header(&reader.header);
      ranks = reader.header.ranks;
      is_good = print_rank(&reader) && is_good;
    } else {
      fprintf(stderr, "forebay-replay: %s\n", reader.problem);
      is_good = false;
      unreadable++;
    }
    reader_close(&reader);
  }
  if (unreadable == UNREADABLE_MAX)
    fprintf(stderr, "forebay-replay: the traces of further ranks were not tried\n");
  return is_good && fflush(stdout) == 0;
}
