/* One rank's trace, read from its begin to its end (docs/reference/trace.md). */
#ifndef FOREBAY_REPLAY_READER_H
#define FOREBAY_REPLAY_READER_H

#include "trace_format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A piece of the file's memory. */
struct piece {
  const uint8_t *bytes;
  size_t length;
};

struct definitions {
  struct piece *items;
  size_t count, room;
};

struct predictions {
  struct trace_expected data[DIRECTIONS];
};

struct header {
  int64_t version, started_unix_ms, pid, rank, ranks, begun_unix_ns, tick_ns;
  char mpi[128], program[1024], host[256];
};

struct trailer {
  bool is_there;
  int64_t end, calls, lost_calls, lost_system_calls, stopped;
};

struct reader {
  char path[4096];
  const uint8_t *bytes;
  size_t length, at, block_end;
  struct header header;
  struct trailer trailer;
  struct definitions definitions[TRACE_DEFINITIONS];
  struct predictions *openings, *files; /* by number of the opening, of the path */
  size_t opening_count, opening_room, file_room;
  int64_t last_end, last_thread, last_opening, last_path;
  int64_t requests, last_completed, index;
  char problem[6144]; /* "": none so far */
};

/* Numbers of definitions are -1 where there is none. */
struct traced_call {
  int tag;
  int64_t thread, overlap, code;
  int64_t start, end; /* ticks since the trace began */
  int64_t index;      /* among the calls of the program; of a system call within one, of the next */
  int64_t opening, path;
  int64_t prefix, group, info, mode, bytes_before; /* TRACE_OPEN */
  int64_t displacement, element, type, text;       /* TRACE_SET_VIEW */
  int64_t number, whence;                  /* a size, flag or offset; where it counts from */
  int direction, place, kind;              /* TRACE_DATA */
  int64_t offset, count, moved, request;   /* request: its number, -1: it is none */
  int64_t flags, permissions;              /* TRACE_SYSTEM_OPEN */
  struct piece completed;                  /* TRACE_COMPLETE: distances, see below */
  int64_t completed_count, completed_base; /* the first distance counts from the base */
};

/* False with a problem if it is no trace that this program can read. */
bool reader_open(struct reader *reader, const char *directory, int rank);
void reader_close(struct reader *reader);

/* Back to the first call. */
void reader_rewind(struct reader *reader);

/* The next call; false at the end, or at the place from which on the file is damaged or missing,
 * which is a problem then. */
bool reader_next(struct reader *reader, struct traced_call *call);

/* Fields of a definition or a list. */
struct fields {
  const uint8_t *at, *end;
  bool is_bad;
};

struct fields fields_of(struct piece piece);
uint64_t fields_take(struct fields *fields);
int64_t fields_take_signed(struct fields *fields);

/* The definition; false if there is none of that number. */
bool reader_definition(const struct reader *reader, enum trace_definition kind, int64_t number,
                       struct piece *piece);

/* A text as a string, allocated; "" if there is none. */
char *reader_text(const struct reader *reader, int64_t number);

/* The ranks of MPI_COMM_WORLD in a group, allocated; the count, or -1. */
int reader_group(const struct reader *reader, int64_t number, int **ranks);

bool is_data(int tag);
bool is_system_call(int tag);

#endif
