#define _GNU_SOURCE /* syncfs */

#include "items.h"

#include "options.h"
#include "pattern.h"
#include "stonewall.h"

#include "harness/message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct attempt making = {"mkdir", "\nhint: IO500 makes new directories only"};
static const struct attempt entering = {"open", "\nhint: an earlier phase makes this directory"};
static const struct attempt creating = {"create", hint_out_of_space};
static const struct attempt looking = {"stat", ""};
static const struct attempt reading = {"read", ""};
static const struct attempt deleting = {"unlink", ""};
static const struct attempt syncing = {"syncfs", hint_out_of_space};

enum { NAME_BYTES_MAX = 64, READ_BYTES_MAX = ITEM_BYTES + 1 };

/* The files of one rank in its directory, or in that of all ranks. */
struct items {
  struct benchmark *benchmark;
  char top[PATH_BYTES_MAX - 64]; /* test-dir.0-0, as mdtest names it */
  char path[PATH_BYTES_MAX];     /* the directory of the files */
  int directory;
  int owner; /* whose files they are */
  struct pattern pattern;
  struct mismatches wrong;
  char fault[NAME_BYTES_MAX + 96];
};

static bool agreed(const struct items *items, const char *path, const struct attempt *attempt,
                   bool good) {
  return attempt_agreed(items->benchmark->comm, path, attempt, good ? NULL : strerror(errno));
}

static bool prepare(struct items *items, struct benchmark *benchmark, int owner) {
  const struct options *options = benchmark->options;
  *items = (struct items){
      .benchmark = benchmark, .directory = -1, .owner = owner, .wrong = no_mismatches};
  snprintf(items->top, sizeof items->top, "%s/%s/test-dir.0-0", options->directory,
           options->phase->folder);
  if (options->phase->in_own_file)
    snprintf(items->path, sizeof items->path, "%s/mdtest_tree.%d.0", items->top, owner);
  else
    snprintf(items->path, sizeof items->path, "%s/mdtest_tree.0", items->top);
  bool got = pattern_make(&items->pattern, ITEM_BYTES, options->signature, owner);
  return attempt_memory(benchmark->comm, got, "a file", "run fewer ranks on each node");
}

static void give_up(struct items *items) {
  if (items->directory >= 0)
    close(items->directory);
  items->directory = -1;
  pattern_free(&items->pattern);
}

/* Not timed, as in mdtest, which counts its trees by themselves. */
static bool make_directories(struct items *items) {
  bool first = items->benchmark->rank == 0;
  bool makes = first || items->benchmark->options->phase->in_own_file;
  bool good = !first || mkdir(items->top, 0700) == 0;
  if (!agreed(items, items->top, &making, good))
    return false;
  good = !makes || mkdir(items->path, 0700) == 0;
  return agreed(items, items->path, &making, good);
}

static bool enter(struct items *items) {
  items->directory = open(items->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  return agreed(items, items->path, &entering, items->directory >= 0);
}

static void name_of(const struct items *items, int64_t index, char name[NAME_BYTES_MAX]) {
  snprintf(name, NAME_BYTES_MAX, "file.mdtest.%d.%lld", items->owner, (long long)index);
}

/* The fault with the file it is about. */
static const char *fault_of(struct items *items, const char *name, const char *what) {
  snprintf(items->fault, sizeof items->fault, "%s: %s", name, what);
  return items->fault;
}

static int64_t place_of(int64_t index) { return index * ITEM_BYTES; }

/* Whether a call moved the whole file. A short transfer says "the file is short". */
static const char *item_fault(ssize_t moved, ssize_t expected) {
  if (moved < 0)
    return strerror(errno);
  return moved == expected ? NULL : "the file has another size";
}

static const char *create_one(void *context, int64_t index) {
  struct items *items = context;
  ssize_t bytes = items->benchmark->options->phase->transfer_bytes;
  char name[NAME_BYTES_MAX];
  name_of(items, index, name);
  int descriptor =
      openat(items->directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (descriptor < 0)
    return fault_of(items, name, strerror(errno));
  const char *fault = NULL;
  if (bytes > 0) {
    pattern_stamp(&items->pattern, place_of(index));
    fault = item_fault(write(descriptor, items->pattern.bytes, (size_t)bytes), bytes);
    items->benchmark->report.calls++;
  }
  if (close(descriptor) != 0 && fault == NULL)
    fault = strerror(errno);
  return fault == NULL ? NULL : fault_of(items, name, fault);
}

static const char *stat_one(void *context, int64_t index) {
  struct items *items = context;
  char name[NAME_BYTES_MAX];
  struct stat status;
  name_of(items, index, name);
  if (fstatat(items->directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
    return fault_of(items, name, strerror(errno));
  bool whole =
      S_ISREG(status.st_mode) && status.st_size == items->benchmark->options->phase->transfer_bytes;
  if (!whole && items->benchmark->options->verify)
    mismatches_add(&items->wrong, place_of(index), (double)status.st_size);
  return NULL;
}

static const char *read_one(void *context, int64_t index) {
  struct items *items = context;
  unsigned char found[READ_BYTES_MAX];
  char name[NAME_BYTES_MAX];
  name_of(items, index, name);
  int descriptor = openat(items->directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0)
    return fault_of(items, name, strerror(errno));
  const char *fault = item_fault(read(descriptor, found, sizeof found), ITEM_BYTES);
  items->benchmark->report.calls++;
  close(descriptor);
  if (fault != NULL)
    return fault_of(items, name, fault);
  if (items->benchmark->options->verify) {
    pattern_stamp(&items->pattern, place_of(index));
    pattern_compare(&items->pattern, found, 0, ITEM_BYTES, place_of(index), &items->wrong);
  }
  return NULL;
}

static const char *delete_one(void *context, int64_t index) {
  struct items *items = context;
  char name[NAME_BYTES_MAX];
  name_of(items, index, name);
  return unlinkat(items->directory, name, 0) == 0 ? NULL : fault_of(items, name, strerror(errno));
}

/* mdtest's -Y: one rank of each node syncs, within the time of the phase. */
static bool sync_nodes(struct items *items) {
  MPI_Comm node;
  int rank_on_node;
  MPI_Comm_split_type(items->benchmark->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &rank_on_node);
  MPI_Comm_free(&node);
  double start = MPI_Wtime();
  bool good = rank_on_node != 0 || syncfs(items->directory) == 0;
  items->benchmark->report.io.sync_s = MPI_Wtime() - start;
  return agreed(items, items->path, &syncing, good);
}

bool items_create(struct benchmark *benchmark) {
  struct items items;
  if (!prepare(&items, benchmark, benchmark->rank))
    return false;
  const struct stonewall stonewall = {&creating, items.path, create_one, &items};
  bool good = make_directories(&items) && enter(&items);
  wall_start(benchmark);
  double start = MPI_Wtime();
  good = good && stonewall_run(benchmark, &stonewall);
  benchmark->report.io.write_s = MPI_Wtime() - start;
  good = good && sync_nodes(&items);
  wall_stop(benchmark);
  give_up(&items);
  return good;
}

static void name_mismatches(struct items *items) {
  bool names_it;
  struct report *report = &items->benchmark->report;
  char name[NAME_BYTES_MAX];
  report->mismatches = mismatches_join(items->benchmark->comm, &items->wrong, &names_it);
  if (!names_it)
    return;
  name_of(items, items->wrong.first / ITEM_BYTES, name);
  bool by_stat = items->benchmark->options->phase->run == items_stat;
  complain("%s/%s: wrong %s: found %.0f; %lld values of all files are wrong", items->path, name,
           by_stat ? "kind or size" : "value", items->wrong.found, (long long)report->mismatches);
}

/* Acts on the partner's files. */
static bool run_on_partner_files(struct benchmark *benchmark, const struct attempt *attempt,
                                 const char *(*operate)(void *context, int64_t index),
                                 struct items *items) {
  if (!prepare(items, benchmark, benchmark->partner))
    return false;
  const struct stonewall stonewall = {attempt, items->path, operate, items};
  bool good = enter(items);
  wall_start(benchmark);
  double start = MPI_Wtime();
  good = good && stonewall_run(benchmark, &stonewall);
  benchmark->report.io.read_s = MPI_Wtime() - start;
  wall_stop(benchmark);
  if (good)
    name_mismatches(items);
  give_up(items);
  return good;
}

bool items_stat(struct benchmark *benchmark) {
  struct items items;
  return run_on_partner_files(benchmark, &looking, stat_one, &items);
}

bool items_read(struct benchmark *benchmark) {
  struct items items;
  return run_on_partner_files(benchmark, &reading, read_one, &items);
}

bool items_delete(struct benchmark *benchmark) {
  struct items items;
  bool removes = benchmark->rank == 0 || benchmark->options->phase->in_own_file;
  if (!run_on_partner_files(benchmark, &deleting, delete_one, &items))
    return false;
  bool good = !removes || rmdir(items.path) == 0;
  if (!agreed(&items, items.path, &deleting, good))
    return false;
  good = benchmark->rank != 0 || rmdir(items.top) == 0;
  return agreed(&items, items.top, &deleting, good);
}
