#define _GNU_SOURCE
#include "report/rank_merge.h"

#include "base/arena.h"
#include "base/library.h"
#include "base/message.h"
#include "base/path.h"
#include "record/file_table.h"
#include "record/observation.h"
#include "record/single_byte_io.h"
#include "settings/settings.h"

#include <stdlib.h>
#include <string.h>

/* One file of one rank on its way to rank 0; the strings and bits follow it, each string with its
 * zero. Moments are since the origin. */
struct parcel {
  struct tally tally;
  uint32_t path_bytes, asked_bytes, program_bytes, force_bytes, active_bytes;
};

struct head {
  int64_t dropped, joined;
  int64_t files;
  double io_s;
  struct process_count count;
  struct heat heat[LAYERS];
};

static size_t active_bytes(int64_t collective_writes) {
  int64_t kept =
      collective_writes < COLLECTIVE_CALLS_MAX ? collective_writes : COLLECTIVE_CALLS_MAX;
  return (size_t)(kept + 7) / 8;
}

static uint32_t string_bytes(const struct file *file, const struct text *text) {
  return file->records_hints ? (uint32_t)text->length + 1 : 1;
}

/* Files opened without MPI-IO are closed when no descriptor is left. Of inherited descriptors and
 * opened ones, the inherited stay open. */
static int64_t closes_of(const struct file *file) {
  const struct counters *counters = &file->tally->counters;
  int64_t bound = __atomic_load_n(&file->bound, __ATOMIC_RELAXED);
  int64_t closed = counters->opens + counters->inherited - bound;
  if (file->layer == LAYER_MPIIO)
    return counters->closes;
  return closed < 0 ? 0 : closed < counters->opens ? closed : counters->opens;
}

static void fill(struct parcel *parcel, const struct file *file) {
  struct tally *tally = &parcel->tally;
  *parcel = (struct parcel){
      .tally = *file->tally,
      .path_bytes = (uint32_t)strlen(file->path) + 1,
      .asked_bytes = string_bytes(file, &file->hints_asked),
      .program_bytes = string_bytes(file, &file->hints_of_program),
      .force_bytes = string_bytes(file, &file->hints_in_force),
      .active_bytes = (uint32_t)active_bytes(file->tally->collective_writes),
  };
  tally->moments = moments_since(&file->tally->moments, files_origin_s());
  tally->counters.closes = closes_of(file);
  if (file->layer == LAYER_MPIIO)
    return;
  /* The program's calls are the system calls. */
  memcpy(tally->asked_sizes, tally->system_sizes, sizeof tally->asked_sizes);
  memcpy(tally->moments.program, tally->moments.system, sizeof tally->moments.program);
  for (int direction = 0; direction < DIRECTIONS; direction++) {
    struct traffic *traffic = &tally->counters.traffic[direction];
    traffic->asked_bytes = traffic->system_bytes;
    tally->seconds.traffic[direction].calls = tally->seconds.traffic[direction].data;
  }
}

/* Large objects are not on the stack here and below: a program may exit in a signal handler that
 * has little of it. */
static void pack_file(const struct file *file, struct text *out) {
  static struct parcel parcel;
  fill(&parcel, file);
  text_add_bytes(out, &parcel, sizeof parcel);
  text_add_bytes(out, file->path, parcel.path_bytes);
  text_add_bytes(out, file->records_hints ? text_of(&file->hints_asked) : "", parcel.asked_bytes);
  text_add_bytes(out, file->records_hints ? text_of(&file->hints_of_program) : "",
                 parcel.program_bytes);
  text_add_bytes(out, file->records_hints ? text_of(&file->hints_in_force) : "",
                 parcel.force_bytes);
  text_add_bytes(out, file->tally->wrote, parcel.active_bytes);
}

static double io_s_of(const struct file *file) {
  const struct seconds *seconds = &file->tally->seconds;
  double sum = seconds->open + seconds->close + seconds->metadata + seconds->sync;
  for (int direction = 0; direction < DIRECTIONS; direction++)
    sum += file->layer == LAYER_MPIIO ? seconds->traffic[direction].calls
                                      : seconds->traffic[direction].data;
  return sum;
}

static void add_to_head(struct head *head, const struct file *file) {
  head->files++;
  head->io_s += io_s_of(file);
  if (file->layer == LAYER_MPIIO)
    heat_add(&head->heat[LAYER_MPIIO], &file->tally->asked_heat);
  heat_add(&head->heat[file->layer == LAYER_STDIO ? LAYER_STDIO : LAYER_POSIX],
           &file->tally->system_heat);
}

void rank_pack_begin(struct text *out) {
  static const struct head none;
  text_add_bytes(out, &none, sizeof none);
}

void rank_pack_file(struct text *out, struct file *file) {
  pending_flush(file);
  if (file_is_empty(file) || out->is_cut)
    return;
  add_to_head((struct head *)(void *)out->bytes, file);
  pack_file(file, out);
}

void rank_pack_end(struct text *out, int64_t dropped, int64_t joined) {
  if (out->is_cut) /* what the receiver reads must be whole */
    text_clear(out);
  struct head *head = (struct head *)(void *)out->bytes;
  if (head == NULL)
    return;
  head->dropped = dropped;
  head->joined = joined;
}

/* All of this rank. Other threads must be done with MPI by now; they may still read and write
 * other files, and what they do from now on is not counted. */
static void pack(struct text *out) {
  files_stop();
  rank_pack_begin(out);
  for (int i = 0; files_at(i) != NULL; i++)
    rank_pack_file(out, files_at(i));
  rank_pack_end(out, files_dropped(), files_joined());
  if (out->length > 0)
    ((struct head *)(void *)out->bytes)->count = unrecorded_count();
}

static struct merged_file *find_or_make(struct job *job, const char *path, enum layer layer) {
  size_t at = path_hash(path, layer) >> 20 & (MERGED_SLOTS - 1);
  for (; job->slots[at] != NULL; at = (at + 1) & (MERGED_SLOTS - 1))
    if (job->slots[at]->layer == layer && strcmp(job->slots[at]->path, path) == 0)
      return job->slots[at];
  bool is_joint = strcmp(path, OTHER_FILES) == 0;
  if (!is_joint && job->own_count == MERGED_FILES_MAX) {
    job->joined++;
    return find_or_make(job, OTHER_FILES, layer);
  }
  struct merged_file *file = arena_alloc(sizeof *file);
  if (file == NULL || (file->path = arena_copy(path)) == NULL)
    return NULL;
  file->layer = layer;
  file->moments = moments_none();
  job->own_count += !is_joint;
  job->files[job->file_count++] = job->slots[at] = file;
  return file;
}

static void merge_rank_counts(struct merged_file *file, int rank, const struct counters *counters) {
  for (int direction = 0; direction < DIRECTIONS; direction++) {
    const struct traffic *traffic = &counters->traffic[direction];
    file->independent_ranks[direction] +=
        traffic->calls[INDEPENDENT] + traffic->calls[NONBLOCKING] > 0;
    file->system_ranks[direction] += traffic->system_calls > 0;
    file->aggregators[direction] += traffic->collective_system_calls > 0;
  }
  const struct traffic *writes = &counters->traffic[WRITING];
  if (writes->system_calls > 0 && file->writer_count < WRITERS_LISTED_MAX)
    file->writers[file->writer_count++] = (struct writer){
        rank, writes->collective_system_calls > 0, writes->system_calls, writes->system_bytes};
}

static void merge_active(struct merged_file *file, int64_t collective_writes, const uint8_t *bits) {
  if (collective_writes > file->collective_writes)
    file->collective_writes = collective_writes;
  if (collective_writes > 0 && file->active == NULL)
    file->active = arena_alloc(COLLECTIVE_CALLS_MAX * sizeof *file->active);
  if (file->active == NULL)
    return;
  for (int64_t i = 0; i < collective_writes && i < COLLECTIVE_CALLS_MAX; i++)
    file->active[i] += bits[i / 8] >> i % 8 & 1 && file->active[i] < UINT16_MAX;
}

/* To be called before the rank is counted. */
static void merge_extremes(struct merged_file *file, int rank, const struct tally *tally) {
  for (int direction = 0; direction < DIRECTIONS; direction++) {
    struct extreme *fastest = &file->fastest_rank[direction];
    struct extreme *slowest = &file->slowest_rank[direction];
    struct extreme this = {rank, tally->seconds.traffic[direction].calls,
                           tally->counters.traffic[direction].asked_bytes};
    if (file->ranks == 0 || this.seconds < fastest->seconds)
      *fastest = this;
    if (file->ranks == 0 || this.seconds > slowest->seconds)
      *slowest = this;
  }
}

static void merge_sizes(struct size_count all[SIZES_MERGED_MAX],
                        const struct size_count more[SIZES_MAX]) {
  for (int i = 0; i < SIZES_MAX; i++)
    if (more[i].calls > 0)
      sizes_note(all, SIZES_MERGED_MAX, more[i].bytes, more[i].calls);
}

static void merge_text(struct text *to, const char *from) {
  if (to->length == 0 && from[0] != '\0')
    text_add_bytes(to, from, strlen(from));
}

static void merge_tally(struct merged_file *file, int rank, const struct tally *tally) {
  if (file->ranks == 0)
    file->rank = rank;
  merge_extremes(file, rank, tally);
  file->ranks++;
  moments_merge(&file->moments, &tally->moments);
  for (int direction = 0; direction < DIRECTIONS; direction++) {
    merge_sizes(file->asked_sizes[direction], tally->asked_sizes[direction]);
    merge_sizes(file->system_sizes[direction], tally->system_sizes[direction]);
    if (tally->end_bytes[direction] > file->end_bytes[direction])
      file->end_bytes[direction] = tally->end_bytes[direction];
  }
  counters_add(&file->counters, &tally->counters);
  seconds_add(&file->sum, &tally->seconds);
  seconds_raise(&file->slowest, &tally->seconds);
  if (file->stripe_bytes == 0) {
    file->stripe_bytes = tally->stripe_bytes;
    file->stripe_count = tally->stripe_count;
  }
  if (file->alignment_bytes == 0)
    file->alignment_bytes = tally->alignment_bytes;
  if (file->opened_by[0] == '\0')
    memcpy(file->opened_by, tally->opened_by, sizeof file->opened_by);
  merge_rank_counts(file, rank, &tally->counters);
}

/* Joins one file and returns where the next one begins. */
static const char *merge_file(struct job *job, int rank, const char *at) {
  static struct parcel parcel;
  memcpy(&parcel, at, sizeof parcel);
  const char *path = at + sizeof parcel, *asked = path + parcel.path_bytes;
  const char *program = asked + parcel.asked_bytes, *force = program + parcel.program_bytes;
  const char *bits = force + parcel.force_bytes;
  struct merged_file *file = find_or_make(job, path, parcel.tally.layer);
  if (file == NULL) {
    job->dropped++;
    return bits + parcel.active_bytes;
  }
  merge_tally(file, rank, &parcel.tally);
  merge_text(&file->hints_asked, asked);
  merge_text(&file->hints_of_program, program);
  merge_text(&file->hints_in_force, force);
  merge_active(file, parcel.tally.collective_writes, (const uint8_t *)bits);
  return bits + parcel.active_bytes;
}

static struct kernel_count *kernel_count_of(struct job *job, const char *host) {
  struct kernel_count *sum = job->kernel_counts;
  while (sum != NULL && strcmp(sum->count.host, host) != 0)
    sum = sum->next;
  if (sum != NULL || (sum = arena_alloc(sizeof *sum)) == NULL)
    return sum;
  memcpy(sum->count.host, host, sizeof sum->count.host);
  sum->next = job->kernel_counts;
  return job->kernel_counts = sum;
}

static void merge_count(struct job *job, const struct process_count *count) {
  bool is_own = count->source == COUNT_OF_PROCESS;
  struct kernel_count *sum = is_own ? kernel_count_of(job, count->host) : NULL;
  job->counted_ranks += sum != NULL || count->source == COUNT_OF_FOREBAY;
  if (sum == NULL)
    return;
  sum->ranks++;
  for (int direction = 0; direction < DIRECTIONS; direction++) {
    sum->count.counted[direction] += count->counted[direction];
    sum->count.elsewhere[direction] += count->elsewhere[direction];
  }
}

void job_add_rank(struct job *job, int rank, const struct text *in) {
  static struct head head;
  if (in->length < sizeof head) {
    message_print("rank %d had no memory for its part of the report, which is missing", rank);
    return;
  }
  memcpy(&head, in->bytes, sizeof head);
  job->dropped += head.dropped;
  job->joined += head.joined;
  merge_count(job, &head.count);
  job->io_sum_s += head.io_s;
  if (head.io_s > job->io_slowest_s)
    job->io_slowest_s = head.io_s;
  for (int layer = 0; layer < LAYERS; layer++)
    heat_add(&job->heat[layer][rank / job->ranks_per_row], &head.heat[layer]);
  const char *at = in->bytes + sizeof head;
  for (int64_t i = 0; i < head.files; i++)
    at = merge_file(job, rank, at);
}

/* One rank after the other, and only when called, so that rank 0 holds the files of one at a time.
 */
static void receive(struct job *job, int rank, MPI_Comm comm) {
  char go = job != NULL;
  int64_t length = 0;
  struct text in = {0};
  library.Send(&go, 1, library.byte, rank, 0, comm);
  if (!go)
    return;
  library.Recv(&length, sizeof length, library.byte, rank, 0, comm, MPI_STATUS_IGNORE);
  in.bytes = malloc((size_t)length + 1);
  if (in.bytes == NULL)
    abort(); /* the sender waits, and cannot be stopped */
  library.Recv(in.bytes, (int)length, library.byte, rank, 0, comm, MPI_STATUS_IGNORE);
  in.length = (size_t)length;
  job_add_rank(job, rank, &in);
  free(in.bytes);
}

static void send(const struct text *out, MPI_Comm comm) {
  char go = 0;
  int64_t length = (int64_t)out->length;
  library.Recv(&go, 1, library.byte, 0, 0, comm, MPI_STATUS_IGNORE);
  if (!go)
    return;
  library.Send(&length, sizeof length, library.byte, 0, 0, comm);
  library.Send(text_of(out), (int)length, library.byte, 0, 0, comm);
}

struct job *job_new(int ranks) {
  struct job *job = arena_alloc(sizeof *job);
  if (job == NULL)
    return NULL;
  job->ranks = ranks;
  job->ranks_per_row = (ranks + HEAT_ROWS_MAX - 1) / HEAT_ROWS_MAX;
  job->rows = (ranks + job->ranks_per_row - 1) / job->ranks_per_row;
  for (int layer = 0; layer < LAYERS; layer++) {
    job->heat[layer] = arena_alloc((size_t)job->rows * sizeof *job->heat[layer]);
    if (job->heat[layer] == NULL)
      return NULL;
  }
  return job;
}

struct job *merge_single_process(void) {
  struct text own = {.is_mapped = true};
  pack(&own);
  struct job *job = own.length > 0 ? job_new(1) : NULL;
  if (job != NULL)
    job_add_rank(job, 0, &own);
  text_clear(&own);
  return job;
}

struct job *merge_ranks(void) {
  /* Of our own, so that no message of the program can be taken for ours; and by a split, since a
   * duplicate would call the program's functions that copy attributes. */
  MPI_Comm comm;
  struct text own = {0};
  struct job *job = NULL;
  library.Comm_split(library.world, 0, settings.rank, &comm);
  pack(&own);
  if (settings.rank == 0) {
    job = job_new(settings.ranks);
    if (job != NULL)
      job_add_rank(job, 0, &own);
    for (int rank = 1; rank < settings.ranks; rank++)
      receive(job, rank, comm);
  } else {
    send(&own, comm);
  }
  text_clear(&own);
  library.Comm_free(&comm);
  return job;
}

void active_classes(const struct merged_file *file, int64_t classes[ACTIVE_CLASSES]) {
  int all = file->aggregators[WRITING];
  memset(classes, 0, ACTIVE_CLASSES * sizeof *classes);
  for (int64_t i = 0; file->active != NULL && i < COLLECTIVE_CALLS_MAX; i++) {
    int active = file->active[i];
    if (active > 0)
      classes[active == 1 ? 0 : active >= all ? 3 : active <= all / 2 ? 1 : 2]++;
  }
}
