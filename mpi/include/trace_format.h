/* The bytes of a trace, as drawn in docs/reference/trace.md: what writes them and what reads them
 * share this.
 */
#ifndef FOREBAY_MPI_TRACE_FORMAT_H
#define FOREBAY_MPI_TRACE_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#define TRACE_MAGIC "FBTRACE\n"
#define TRACE_FILE_NAME "rank-%06d.trace"

enum {
  TRACE_VERSION = 1,
  TRACE_MAGIC_BYTES = 8,
  TRACE_BLOCK_HEAD_BYTES = 8, /* length and checksum of what follows, 32 bits each */
  TRACE_TICK_NS = 100,
  TRACE_VARINT_BYTES_MAX = 10,
  TRACE_SUCCESS = 0,
};

enum trace_tag {
  TRACE_HEADER = 0x00,
  TRACE_DEFINE = 0x01, /* + enum trace_definition */
  TRACE_TRAILER = 0x0f,
  TRACE_OPEN = 0x10,
  TRACE_CLOSE,
  TRACE_SET_VIEW,
  TRACE_SET_SIZE,
  TRACE_PREALLOCATE,
  TRACE_GET_SIZE,
  TRACE_SET_INFO,
  TRACE_SET_ATOMICITY,
  TRACE_SEEK,
  TRACE_SEEK_SHARED,
  TRACE_SYNC,
  TRACE_DELETE,
  TRACE_COMPLETE,
  TRACE_SYSTEM = 0x20,        /* + enum trace_system: of the program, on a descriptor or a path */
  TRACE_SYSTEM_WITHIN = 0x30, /* the same, of the MPI, on a file that it has open */
  TRACE_STREAM = 0x40,        /* the same, of the program, on a stream of C */
  TRACE_DATA = 0x80,          /* + trace_data_code() */
};

enum trace_definition { TRACE_TEXT, TRACE_INFO, TRACE_GROUP, TRACE_TYPE, TRACE_DEFINITIONS };

enum trace_system {
  TRACE_SYSTEM_OPEN,
  TRACE_SYSTEM_CLOSE,
  TRACE_SYSTEM_LOCK,
  TRACE_SYSTEM_SEEK,
  TRACE_SYSTEM_SYNC,
  TRACE_SYSTEM_TRUNCATION,
  TRACE_SYSTEM_READ,
  TRACE_SYSTEM_WRITE,
  TRACE_SYSTEM_STAT,
  TRACE_SYSTEM_MAPPING,
  TRACE_SYSTEM_ALLOCATION,
  TRACE_SYSTEM_DUPLICATE,
  TRACE_SYSTEM_CALLS,
};

/* Such calls are part of a call of the program, or of an operation that it has begun. */
static inline int trace_is_of_mpi(int tag) { return (tag & 0xf0) == TRACE_SYSTEM_WITHIN; }

/* What follows the tag of a call and these flags, in the order of the bits, ahead of the call's own
 * fields. A bit that is not set means: as predicted. */
enum trace_flag {
  TRACE_OTHER_THREAD = 1,
  TRACE_OVERLAP = 2,
  TRACE_FAILED = 4,
  TRACE_OTHER_FILE = 8,
  TRACE_OTHER_COUNT = 16,
  TRACE_OTHER_TYPE = 32,
  TRACE_OTHER_OFFSET = 64,
  TRACE_SHORT = 128, /* system calls: fewer bytes were moved than requested */
};

/* Where a call that moves data begins. */
enum trace_place { TRACE_AT, TRACE_POINTER, TRACE_SHARED, TRACE_PLACES };

enum direction { READING, WRITING, DIRECTIONS };

enum call_kind {
  INDEPENDENT,
  COLLECTIVE,
  NONBLOCKING,            /* independent */
  NONBLOCKING_COLLECTIVE, /* MPI_File_iwrite_all and its like */
  SPLIT_COLLECTIVE,       /* ..._begin */
  CALL_KINDS,
  SPLIT_END = CALL_KINDS, /* ..._end: its time counts, the call was counted at its begin */
  TRACE_KINDS,
};

/* What the next call is expected to look like; the reader of a trace expects the same. */
struct trace_expected {
  int64_t count, type, offset, step;
};

/* Sizes of a file that is about to be opened. TRACE_NOT_LOOKED: this rank is not the first one of
 * the communicator. */
enum { TRACE_ABSENT = -1, TRACE_NOT_LOOKED = -2 };

static inline int trace_data_code(int direction, int place, int kind) {
  return (direction * TRACE_PLACES + place) * TRACE_KINDS + kind;
}

/* How a datatype was made. */
enum trace_combiner {
  TRACE_NAMED,
  TRACE_DUP,
  TRACE_CONTIGUOUS,
  TRACE_VECTOR,
  TRACE_HVECTOR,
  TRACE_INDEXED,
  TRACE_HINDEXED,
  TRACE_INDEXED_BLOCK,
  TRACE_HINDEXED_BLOCK,
  TRACE_STRUCT,
  TRACE_SUBARRAY,
  TRACE_DARRAY,
  TRACE_F90_REAL,
  TRACE_F90_COMPLEX,
  TRACE_F90_INTEGER,
  TRACE_RESIZED,
  TRACE_COMBINERS,
};

enum trace_order { TRACE_ORDER_C, TRACE_ORDER_FORTRAN };
enum trace_distribution { TRACE_BLOCK, TRACE_CYCLIC, TRACE_NONE };
enum { TRACE_DEFAULT_ARGUMENT = -1 };

enum trace_end { TRACE_FINALIZED = 1, TRACE_ABORTED = 2 };

/* Numbers are little-endian base 128; signed ones with the sign in the lowest bit. */
static inline size_t trace_put(uint8_t *to, uint64_t value) {
  size_t length = 0;
  for (; value >= 0x80; value >>= 7)
    to[length++] = (uint8_t)(value | 0x80);
  to[length++] = (uint8_t)value;
  return length;
}

static inline uint64_t trace_fold(int64_t value) {
  return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
}

static inline int64_t trace_unfold(uint64_t value) {
  return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

/* FNV-1a. */
static inline uint64_t trace_hash(uint64_t hash, const uint8_t *bytes, size_t length) {
  for (size_t i = 0; i < length; i++)
    hash = (hash ^ bytes[i]) * 0x100000001b3u;
  return hash;
}

#define TRACE_HASH_SEED 0xcbf29ce484222325u

static inline uint32_t trace_checksum(const uint8_t *bytes, size_t length) {
  uint64_t hash = trace_hash(TRACE_HASH_SEED, bytes, length);
  return (uint32_t)(hash ^ hash >> 32);
}

#endif
