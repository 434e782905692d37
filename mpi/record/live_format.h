/* The live file of one process (docs/explanation/profiles.md#live-files): a head, then entries one
 * behind the other, each whole when used_bytes of the head reaches its end. Of one machine's byte
 * order and one build's struct tally, whose size tells them apart. */
#ifndef FOREBAY_MPI_LIVE_FORMAT_H
#define FOREBAY_MPI_LIVE_FORMAT_H

#include "record/tally.h"

#include <stdint.h>

#define LIVE_MAGIC "fbylive\n"
#define LIVE_PREFIX "live-"

enum {
  LIVE_FORMAT = 2,
  LIVE_BYTES_MAX = 64 << 20,
  LIVE_RANKS_MAX = 1024, /* programs with more ranks have no live files */
  LIVE_ALIGNMENT_BYTES = 16,
};

struct live_head {
  char magic[8];
  uint32_t format, head_bytes, tally_bytes;
  int32_t pid, rank, ranks; /* ranks: 0 outside of MPI */
  uint64_t used_bytes;      /* atomic: with all whole entries */
  uint64_t start_ticks;     /* of the process, since boot */
  uint64_t pid_namespace;   /* inode */
  double origin_s;          /* a reading of the clock that moments are readings of */
  double started_unix_s;    /* the same moment */
  int64_t dropped;          /* opens of files that are not in it */
  int64_t joined;           /* of files that are in it together */
  char step_id[48];         /* of an MPI program: MS-PID of its rank 0 */
  char host[256];
};

enum live_kind {
  LIVE_PROGRAM = 1, /* text: members of JSON that name the program, the first entry */
  LIVE_TALLY = 2,   /* struct tally, then the path and its zero */
};

struct live_entry {
  uint32_t kind, bytes; /* of all of it: a multiple of LIVE_ALIGNMENT_BYTES */
  uint64_t unused;      /* 0 */
};

#endif
