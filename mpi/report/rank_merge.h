/* The files of all ranks, merged on rank 0. */
#ifndef FOREBAY_MPI_RANK_MERGE_H
#define FOREBAY_MPI_RANK_MERGE_H

#include "record/elsewhere.h"
#include "record/file_record.h"

enum {
  MERGED_FILES_MAX = 4096,             /* paths of the whole job; later ones are OTHER_FILES */
  MERGED_SLOTS = 4 * MERGED_FILES_MAX, /* a power of two */
  WRITERS_LISTED_MAX = 256,
  ACTIVE_CLASSES = 4,
  HEAT_ROWS_MAX = 256,
};

struct writer {
  int rank;
  bool is_aggregator; /* wrote inside of a collective call */
  int64_t calls, bytes;
};

/* Of the ranks that opened a file, one that spent the least or the most time in the program's
 * calls of one direction. */
struct extreme {
  int rank;
  double seconds;
  int64_t bytes; /* that the program moved by them */
};

struct merged_file {
  char *path;
  enum layer layer;
  int ranks; /* that opened it, or tried to */
  int rank;  /* the first of them */
  struct counters counters;
  struct seconds sum, slowest;
  struct moments moments; /* seconds since the origin; NAN: none */
  struct extreme fastest_rank[DIRECTIONS], slowest_rank[DIRECTIONS];
  struct size_count asked_sizes[DIRECTIONS][SIZES_MERGED_MAX];
  struct size_count system_sizes[DIRECTIONS][SIZES_MERGED_MAX];
  int64_t end_bytes[DIRECTIONS];      /* the largest end of a system call */
  int64_t stripe_bytes, stripe_count; /* 0: not known */
  int64_t alignment_bytes;            /* 0: not known */
  char opened_by[LIBRARY_NAME_BYTES_MAX];
  struct text hints_asked, hints_of_program, hints_in_force;
  /* Ranks that made at least one such call. */
  int independent_ranks[DIRECTIONS], system_ranks[DIRECTIONS], aggregators[DIRECTIONS];
  int writer_count; /* of those listed */
  struct writer writers[WRITERS_LISTED_MAX];
  int64_t collective_writes;
  uint16_t *active; /* ranks that wrote in the n-th collective write; NULL: none yet */
};

/* What the kernel counted for the ranks of one host of which `forebay` has no count. */
struct kernel_count {
  struct kernel_count *next;
  struct process_count count;
  int ranks;
};

struct job {
  int ranks;
  int file_count, own_count; /* all; without those of OTHER_FILES */
  struct merged_file *files[MERGED_FILES_MAX + LAYERS];
  struct merged_file *slots[MERGED_SLOTS]; /* the same by path and layer */
  int64_t dropped;   /* opens that were not observed, and files for which there was no memory */
  int64_t joined;    /* opens of files, and files, that are in OTHER_FILES for want of room */
  int counted_ranks; /* whose count is known, here or by `forebay` */
  struct kernel_count *kernel_counts;
  double io_sum_s, io_slowest_s; /* in the program's calls on all files */
  int ranks_per_row, rows;
  /* Neighbouring ranks share a row. By LAYER_MPIIO the program's calls, by LAYER_POSIX all system
   * calls. */
  struct heat *heat[LAYERS];
};

/* Collective. Only rank 0 gets an answer; elsewhere, and where memory ends, NULL. */
struct job *merge_ranks(void);

/* The files of this process alone, without MPI and without malloc. NULL where memory ends. */
struct job *merge_single_process(void);

/* The files of one rank in a form to be sent: begin, each file, end. The text is empty then if
 * there was no memory. */
void rank_pack_begin(struct text *out);
void rank_pack_file(struct text *out, struct file *file);
void rank_pack_end(struct text *out, int64_t dropped, int64_t joined);

/* Joins the packed ranks; NULL where memory ends. */
struct job *job_new(int ranks);
void job_add_rank(struct job *job, int rank, const struct text *packed);

/* Collective writes by how many of the file's aggregators were active: one; up to half; more; all.
 * Those in which nobody wrote are left out. */
void active_classes(const struct merged_file *file, int64_t classes[ACTIVE_CLASSES]);

#endif
