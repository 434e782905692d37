/* What is counted for one file on one rank. All members of one struct have one type, so that ranks
 * are joined member by member (counters_add). */
#ifndef FOREBAY_MPI_COUNTERS_H
#define FOREBAY_MPI_COUNTERS_H

#include "include/trace_format.h"

#include <stdint.h>

/* Sizes by their upper ends: 100, 1 Ki, 10 Ki, 100 Ki, 1 Mi, 4 Mi, 10 Mi, 100 Mi, 1 Gi, none. */
enum { SIZE_CLASSES = 10 };

struct traffic {
  int64_t calls[CALL_KINDS];
  int64_t asked_bytes; /* by the program, in all calls */
  int64_t asked_sizes[SIZE_CLASSES];
  int64_t system_calls; /* to the operating system; without the reads of read-modify-write */
  int64_t system_bytes;
  int64_t system_sizes[SIZE_CLASSES];
  int64_t system_failures;
  int64_t collective_system_calls; /* those made inside of a collective call */
  int64_t stripe_sized;            /* exactly one stripe unit long, and aligned to it */
  int64_t gaps;                    /* began behind the end of the rank's previous one */
  int64_t gap_bytes;
  int64_t steps_back;  /* began before the end of the rank's previous one */
  int64_t consecutive; /* began exactly there */
  int64_t rmw_calls;   /* WRITING: reads that a write made necessary */
  int64_t rmw_bytes;
};

/* Calls on names, attributes and directories; statistics and truncations have counters of their
 * own. */
enum name_call {
  NAME_ACCESS,
  NAME_UNLINK,
  NAME_MKDIR,
  NAME_RMDIR,
  NAME_RENAME,
  NAME_LINK,
  NAME_ATTRIBUTES, /* mode, owner, times */
  NAME_OPENDIR,
  NAME_READDIR,
  NAME_CALLS,
};

struct counters {
  int64_t opens, closes, open_failures;
  int64_t inherited;  /* descriptors that were open when the program began */
  int64_t sync_calls; /* of the program: MPI_File_sync */
  int64_t locks, truncations, syncs, seeks, stats, mmaps; /* system calls */
  int64_t mapped_bytes, mapped_to_write_bytes;            /* of the file; the latter shared */
  int64_t names[NAME_CALLS];
  int64_t lazy_opens;      /* whose file system took them as lazy */
  int64_t hdf5_alignments; /* opens inside of an H5Fcreate to which we gave an alignment */
  int64_t not_aligned; /* system calls that move data and begin off a multiple of the alignment */
  struct traffic traffic[DIRECTIONS];
};

struct seconds {
  double open, close, metadata, sync;
  struct {
    double calls;   /* inside of the program's calls to MPI */
    double data;    /* of these, in system calls that move data */
    double other;   /* of these, in other system calls: locks, seeks, truncation */
    double outside; /* in system calls that move data outside of any call on the file */
  } traffic[DIRECTIONS];
};

/* Clock readings, or seconds since the origin once ranks are joined; 0, or NAN there: none. */
struct span {
  double first, last;
};

struct moments {
  struct span opened; /* begin of the first open, end of the last close */
  struct span program[DIRECTIONS], system[DIRECTIONS]; /* calls that move data */
};

void span_note(struct span *span, double begin_s, double end_s);

/* All spans as seconds since the origin, and NAN where there was nothing. */
struct moments moments_since(const struct moments *moments, double origin_s);

/* No moments at all, to begin a join with. */
struct moments moments_none(void);
void moments_merge(struct moments *all, const struct moments *more);

void counters_add(struct counters *sum, const struct counters *more);
void seconds_add(struct seconds *sum, const struct seconds *more);
void seconds_raise(struct seconds *most, const struct seconds *candidate);

/* All calls on names, attributes and directories. */
int64_t counters_metadata_calls(const struct counters *counters);

int size_class(int64_t bytes);

#endif
