#include "bulk.h"

#include "options.h"
#include "pattern.h"
#include "stonewall.h"

#include "harness/message.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct attempt creating = {"open", "\nhint: IO500 writes new files only"};
static const struct attempt opening = {"open", "\nhint: an earlier phase writes this file"};
static const struct attempt writing = {"write", hint_out_of_space};
static const struct attempt reading = {"read", ""};
static const struct attempt syncing = {"fsync", hint_out_of_space};
static const struct attempt closing = {"close", hint_out_of_space};

/* The file of one rank, or the shared one, while a phase uses it. */
struct bulk {
  struct benchmark *benchmark;
  char path[PATH_BYTES_MAX];
  int descriptor;
  int owner; /* whose data are written or read */
  struct pattern pattern;
  unsigned char *found; /* what was read */
  struct mismatches wrong;
  uint64_t random; /* state of the sequence of places */
};

static bool agreed(const struct bulk *bulk, const struct attempt *attempt, bool good) {
  return attempt_agreed(bulk->benchmark->comm, bulk->path, attempt, good ? NULL : strerror(errno));
}

static bool prepare(struct bulk *bulk, struct benchmark *benchmark, int owner) {
  const struct options *options = benchmark->options;
  size_t length = options->phase->in_own_file ? EASY_TRANSFER_BYTES : HARD_TRANSFER_BYTES;
  const char *folder = options->phase->folder;
  *bulk = (struct bulk){
      .benchmark = benchmark, .descriptor = -1, .owner = owner, .wrong = no_mismatches};
  if (options->phase->in_own_file)
    snprintf(bulk->path, sizeof bulk->path, "%s/%s/ior_file_easy.%08d", options->directory, folder,
             owner);
  else
    snprintf(bulk->path, sizeof bulk->path, "%s/%s/file", options->directory, folder);
  bool got = pattern_make(&bulk->pattern, length, options->signature, owner);
  bulk->found = malloc(length);
  return attempt_memory(benchmark->comm, got && bulk->found != NULL, "a transfer",
                        "run fewer ranks on each node");
}

static void give_up(struct bulk *bulk) {
  if (bulk->descriptor >= 0)
    close(bulk->descriptor);
  pattern_free(&bulk->pattern);
  free(bulk->found);
}

/* Where transfer `index` of the owner is in its file: ior's blocks of one transfer, rank by rank.
 */
static off_t offset_of(const struct bulk *bulk, int64_t index) {
  const struct phase *phase = bulk->benchmark->options->phase;
  int64_t at = phase->in_own_file ? index : index * bulk->benchmark->ranks + bulk->owner;
  return (off_t)(at * (int64_t)bulk->pattern.length);
}

/* Moves all bytes. NULL, or the fault. */
static const char *move(const struct bulk *bulk, bool writes, unsigned char *bytes, size_t length,
                        off_t offset) {
  for (size_t moved = 0; moved < length;) {
    ssize_t count =
        writes ? pwrite(bulk->descriptor, bytes + moved, length - moved, offset + (off_t)moved)
               : pread(bulk->descriptor, bytes + moved, length - moved, offset + (off_t)moved);
    if (count < 0 && errno != EINTR)
      return strerror(errno);
    if (count == 0)
      return writes ? "no byte was taken" : "the file ends inside a transfer";
    moved += count > 0 ? (size_t)count : 0;
    bulk->benchmark->report.calls++;
  }
  return NULL;
}

static const char *write_one(void *context, int64_t index) {
  struct bulk *bulk = context;
  off_t offset = offset_of(bulk, index);
  pattern_stamp(&bulk->pattern, offset);
  return move(bulk, true, bulk->pattern.bytes, bulk->pattern.length, offset);
}

static const char *read_one(void *context, int64_t index) {
  struct bulk *bulk = context;
  off_t offset = offset_of(bulk, index);
  const char *fault = move(bulk, false, bulk->found, bulk->pattern.length, offset);
  if (fault != NULL || !bulk->benchmark->options->verify)
    return fault;
  pattern_stamp(&bulk->pattern, offset);
  pattern_compare(&bulk->pattern, bulk->found, 0, bulk->pattern.length, offset, &bulk->wrong);
  return NULL;
}

static const char *read_random(void *context, int64_t index) {
  struct bulk *bulk = context;
  (void)index;
  int64_t pages =
      (int64_t)bulk->benchmark->options->limit * EASY_TRANSFER_BYTES / RANDOM_TRANSFER_BYTES;
  off_t offset = (off_t)(pattern_random(&bulk->random) % (uint64_t)pages) * RANDOM_TRANSFER_BYTES;
  const char *fault = move(bulk, false, bulk->found, RANDOM_TRANSFER_BYTES, offset);
  if (fault != NULL || !bulk->benchmark->options->verify)
    return fault;
  off_t from = offset % EASY_TRANSFER_BYTES;
  pattern_stamp(&bulk->pattern, offset - from);
  pattern_compare(&bulk->pattern, bulk->found, (size_t)from, RANDOM_TRANSFER_BYTES, offset,
                  &bulk->wrong);
  return NULL;
}

/* Every rank creates its own file; rank 0 alone creates a shared one. */
static bool create(struct bulk *bulk) {
  bool shared = !bulk->benchmark->options->phase->in_own_file;
  double start = MPI_Wtime();
  if (!shared || bulk->benchmark->rank == 0)
    bulk->descriptor = open(bulk->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  bool good =
      agreed(bulk, &creating, bulk->descriptor >= 0 || (shared && bulk->benchmark->rank != 0));
  if (good && bulk->descriptor < 0)
    bulk->descriptor = open(bulk->path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  bulk->benchmark->report.io.open_s = MPI_Wtime() - start;
  return good && agreed(bulk, &opening, bulk->descriptor >= 0);
}

static bool open_existing(struct bulk *bulk) {
  double start = MPI_Wtime();
  bulk->descriptor = open(bulk->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  bulk->benchmark->report.io.open_s = MPI_Wtime() - start;
  return agreed(bulk, &opening, bulk->descriptor >= 0);
}

static bool sync_file(struct bulk *bulk) {
  double start = MPI_Wtime();
  bool good = fsync(bulk->descriptor) == 0;
  bulk->benchmark->report.io.sync_s = MPI_Wtime() - start;
  return agreed(bulk, &syncing, good);
}

static bool close_file(struct bulk *bulk) {
  double start = MPI_Wtime();
  bool good = close(bulk->descriptor) == 0;
  bulk->descriptor = -1;
  bulk->benchmark->report.io.close_s = MPI_Wtime() - start;
  return agreed(bulk, &closing, good);
}

/* Asks the node to forget the file, so that a later phase reads from the storage. Not timed. */
static void drop_cache(const char *path) {
  int descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0)
    return; /* the phases that read it name the fault */
  (void)posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
  close(descriptor);
}

bool bulk_write(struct benchmark *benchmark) {
  struct bulk bulk;
  if (!prepare(&bulk, benchmark, benchmark->rank))
    return false;
  const struct stonewall stonewall = {&writing, bulk.path, write_one, &bulk};
  wall_start(benchmark);
  bool good = create(&bulk);
  double start = MPI_Wtime();
  good = good && stonewall_run(benchmark, &stonewall);
  benchmark->report.io.write_s = MPI_Wtime() - start;
  good = good && sync_file(&bulk) && close_file(&bulk);
  wall_stop(benchmark);
  if (good)
    drop_cache(bulk.path);
  give_up(&bulk);
  return good;
}

static void name_mismatches(struct bulk *bulk) {
  bool names_it;
  struct report *report = &bulk->benchmark->report;
  report->mismatches = mismatches_join(bulk->benchmark->comm, &bulk->wrong, &names_it);
  if (names_it)
    complain("%s: wrong value at byte %lld: found %.0f; %lld of all bytes are wrong", bulk->path,
             (long long)bulk->wrong.first, bulk->wrong.found, (long long)report->mismatches);
}

static bool read_files(struct benchmark *benchmark, bool random) {
  struct bulk bulk;
  if (!prepare(&bulk, benchmark, benchmark->partner))
    return false;
  bulk.random = bulk.pattern.key;
  /* What was not synced when its writer dropped it is clean by now. */
  drop_cache(bulk.path);
  const struct stonewall stonewall = {&reading, bulk.path, random ? read_random : read_one, &bulk};
  wall_start(benchmark);
  bool good = open_existing(&bulk);
  double start = MPI_Wtime();
  if (good && random)
    good = stonewall_read(benchmark, &stonewall);
  else if (good)
    good = stonewall_run(benchmark, &stonewall);
  benchmark->report.io.read_s = MPI_Wtime() - start;
  good = good && close_file(&bulk);
  wall_stop(benchmark);
  if (good)
    name_mismatches(&bulk);
  give_up(&bulk);
  return good;
}

bool bulk_read(struct benchmark *benchmark) { return read_files(benchmark, false); }

bool bulk_read_random(struct benchmark *benchmark) { return read_files(benchmark, true); }
