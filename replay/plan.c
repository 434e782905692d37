#define _GNU_SOURCE
#include "plan.h"

#include "memory.h"
#include "targets.h"

#include <fcntl.h>
#include <limits.h>
#include <mpi.h>

bool is_collective(const struct traced_call *call) {
  if (is_data(call->tag))
    return call->kind != INDEPENDENT && call->kind != NONBLOCKING;
  return call->tag >= TRACE_CLOSE && call->tag <= TRACE_SYNC && call->tag != TRACE_GET_SIZE &&
         call->tag != TRACE_SEEK;
}

static struct planned_path *path_of(struct plan *plan, int64_t text) {
  for (size_t i = plan->path_count; i-- > 0;) /* the last ones are used most */
    if (plan->paths[i].text == text)
      return &plan->paths[i];
  plan->paths =
      memory_grown(plan->paths, &plan->path_room, plan->path_count + 1, sizeof *plan->paths);
  struct planned_path *path = &plan->paths[plan->path_count++];
  *path = (struct planned_path){.text = text, .first_unix_ns = INT64_MAX, .bytes_before = -1};
  return path;
}

static void note_look(struct plan *plan, const struct reader *reader,
                      const struct traced_call *call, int64_t bytes_before, bool writes) {
  struct planned_path *path = path_of(plan, call->path);
  path->is_written |= writes;
  if (bytes_before == TRACE_NOT_LOOKED || path->first_unix_ns != INT64_MAX)
    return;
  path->first_unix_ns = reader->header.begun_unix_ns + call->start * reader->header.tick_ns;
  path->bytes_before = bytes_before;
}

static void note_open(struct plan *plan, const struct reader *reader,
                      const struct traced_call *call) {
  struct piece path = {0}, group = {0};
  int *ranks;
  reader_definition(reader, TRACE_TEXT, call->path, &path);
  reader_definition(reader, TRACE_GROUP, call->group, &group);
  plan->openings = memory_grown(plan->openings, &plan->opening_room, plan->opening_count + 1,
                                sizeof *plan->openings);
  struct planned_opening *opening = &plan->openings[plan->opening_count++];
  *opening = (struct planned_opening){
      .key = trace_hash(trace_hash(TRACE_HASH_SEED, path.bytes, path.length), group.bytes,
                        group.length),
      .members = reader_group(reader, call->group, &ranks)};
  free(ranks);
  note_look(plan, reader, call, call->bytes_before, (call->mode & MPI_MODE_RDONLY) == 0);
}

/* What could be deleted was there; its size is not in the trace, and any will do. */
static void note_delete(struct plan *plan, const struct reader *reader,
                        const struct traced_call *call) {
  if (call->code == TRACE_SUCCESS)
    note_look(plan, reader, call, 0, true);
  else
    path_of(plan, call->path)->is_written = true;
}

static void note_system_call(struct plan *plan, const struct reader *reader,
                             const struct traced_call *call) {
  int what = call->tag & 0x0f;
  if (what == TRACE_SYSTEM_OPEN)
    note_look(plan, reader, call, call->bytes_before, (call->flags & O_ACCMODE) != O_RDONLY);
  else if (what == TRACE_SYSTEM_TRUNCATION)
    path_of(plan, call->path)->is_written = true;
}

static void note_call(struct plan *plan, const struct reader *reader,
                      const struct traced_call *call) {
  if (call->tag == TRACE_OPEN)
    note_open(plan, reader, call);
  else if (call->tag == TRACE_DELETE)
    note_delete(plan, reader, call);
  else if (is_system_call(call->tag) && !trace_is_of_mpi(call->tag))
    note_system_call(plan, reader, call);
  else if (call->opening >= 0 && is_collective(call))
    plan->openings[call->opening].collectives++;
  plan->thread_count = call->thread >= plan->thread_count ? call->thread + 1 : plan->thread_count;
}

static void scan(struct plan *plan, struct reader *reader) {
  struct traced_call call;
  while (reader_next(reader, &call))
    note_call(plan, reader, &call);
  plan->request_count = reader->requests;
  plan->call_count = reader->index;
}

/* The first rank with a problem prints it; all learn whether there was one. */
static bool all_agree(const char *problem, const char *hint) {
  int rank, first, own;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  own = problem[0] != '\0' ? rank : INT_MAX;
  MPI_Allreduce(&own, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (first == rank)
    fprintf(stderr, "forebay-replay: %s\nhint: %s\n", problem, hint);
  return first == INT_MAX;
}

/* The traces are those of one run, with as many ranks as there are now. */
static bool check_rank_count(const struct reader *reader) {
  int size;
  char problem[256] = "";
  int64_t own[3] = {reader->header.ranks, reader->header.started_unix_ms, reader->header.pid};
  int64_t most[3];
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(own, most, 3, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
  if (most[0] == 0)
    return all_agree(reader->problem, "the directory must be one that "
                                      "FOREBAY_MPI_TRACE has named");
  if (most[0] != size)
    snprintf(problem, sizeof problem, "the trace was made by %lld ranks, these are %d",
             (long long)most[0], size);
  else if (own[0] != 0 && (own[1] != most[1] || own[2] != most[2]))
    snprintf(problem, sizeof problem, "%s: the trace is of another run than that of other ranks",
             strrchr(reader->path, '/') + 1);
  return all_agree(problem, most[0] != size ? "mpiexec -n with as many ranks as made the trace"
                                            : "let each run have a directory of its own");
}

static void describe_gap(const struct reader *reader, char *problem, size_t room) {
  const struct trailer *trailer = &reader->trailer;
  if (reader->problem[0] != '\0')
    snprintf(problem, room, "%s", reader->problem);
  else if (trailer->lost_calls > 0)
    snprintf(problem, room, "%s: the trace lacks %lld call(s)%s", reader->path,
             (long long)trailer->lost_calls,
             trailer->stopped < 0   ? ": its limit was reached"
             : trailer->stopped > 0 ? ": it could not be written"
                                    : "");
  else if (trailer->end == TRACE_ABORTED)
    snprintf(problem, room, "%s: the program ended by MPI_Abort", reader->path);
}

static bool check_trace_complete(const struct reader *reader) {
  char problem[8192] = "";
  describe_gap(reader, problem, sizeof problem);
  return all_agree(problem, "--partial issues what there is");
}

/* An opening on its way to rank 0 and back. */
struct entry {
  uint64_t key;
  int64_t rank, sequence, members, collectives, ordinal;
};

static int by_key(const void *left, const void *right) {
  const struct entry *one = left, *other = right;
  if (one->key != other->key)
    return one->key < other->key ? -1 : 1;
  if (one->ordinal != other->ordinal)
    return one->ordinal < other->ordinal ? -1 : 1;
  if (one->rank != other->rank)
    return one->rank < other->rank ? -1 : 1;
  return one->sequence < other->sequence ? -1 : one->sequence > other->sequence;
}

static int by_rank(const void *left, const void *right) {
  const struct entry *one = left, *other = right;
  if (one->rank != other->rank)
    return one->rank < other->rank ? -1 : 1;
  return one->sequence < other->sequence ? -1 : one->sequence > other->sequence;
}

/* The n-th opening of a path by the same ranks is one and the same call on all of them. True if all
 * of them have it, and as many collective calls on it. */
static bool match(struct entry *entries, size_t count) {
  bool fits = true;
  qsort(entries, count, sizeof *entries, by_key);
  for (size_t i = 1; i < count; i++)
    if (entries[i].key == entries[i - 1].key && entries[i].rank == entries[i - 1].rank)
      entries[i].ordinal = entries[i - 1].ordinal + 1;
  qsort(entries, count, sizeof *entries, by_key);
  for (size_t i = 0, end; i < count; i = end) {
    int64_t least = entries[i].collectives;
    for (end = i; end < count && entries[end].key == entries[i].key &&
                  entries[end].ordinal == entries[i].ordinal;
         end++)
      least = entries[end].collectives < least ? entries[end].collectives : least;
    bool has_all = (int64_t)(end - i) == entries[i].members;
    for (size_t j = i; j < end; j++) {
      fits = fits && has_all && entries[j].collectives == least;
      entries[j].collectives = has_all ? least : -1;
    }
  }
  qsort(entries, count, sizeof *entries, by_rank);
  return fits;
}

/* Bytes of all ranks, one rank's after the other's, on rank 0; allocated. */
static char *gather(const void *own, int bytes, int *counts, int *places, int *whole) {
  int size;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Gather(&bytes, 1, MPI_INT, counts, 1, MPI_INT, 0, MPI_COMM_WORLD);
  *whole = 0;
  for (int i = 0; counts != NULL && i < size; i++) {
    places[i] = *whole;
    *whole += counts[i];
  }
  char *all = counts != NULL ? memory_zeroed((size_t)*whole, 1) : NULL;
  MPI_Gatherv(own, bytes, MPI_BYTE, all, counts, places, MPI_BYTE, 0, MPI_COMM_WORLD);
  return all;
}

/* Where each rank's part begins and how long it is; on rank 0. */
static int *allocate_places(void) {
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return rank == 0 ? memory_zeroed(2 * (size_t)size, sizeof(int)) : NULL;
}

static bool match_openings(struct plan *plan, bool is_partial) {
  int size, whole, rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int *counts = allocate_places(), *places = counts != NULL ? counts + size : NULL;
  int bytes = (int)(plan->opening_count * sizeof(struct entry));
  struct entry *own = memory_zeroed(plan->opening_count, sizeof *own);
  for (size_t i = 0; i < plan->opening_count; i++)
    own[i] = (struct entry){.key = plan->openings[i].key,
                            .rank = rank,
                            .sequence = (int64_t)i,
                            .members = plan->openings[i].members,
                            .collectives = plan->openings[i].collectives};
  char *all = gather(own, bytes, counts, places, &whole);
  bool fits = all == NULL || match((struct entry *)all, (size_t)whole / sizeof *own);
  MPI_Scatterv(all, counts, places, MPI_BYTE, own, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
  for (size_t i = 0; i < plan->opening_count; i++) {
    plan->openings[i].is_issued = own[i].collectives >= 0;
    plan->openings[i].collectives_max = own[i].collectives;
  }
  free(all);
  free(own);
  free(counts);
  return is_partial ||
         all_agree(fits ? ""
                        : "the traces of the ranks do not fit together: collective calls "
                          "of some are missing",
                   "--partial issues what all ranks have");
}

/* Every path of this rank: three numbers and the string with its zero. */
static char *pack_paths(const struct plan *plan, const struct reader *reader, int *bytes) {
  char *all = NULL;
  size_t length = 0;
  FILE *out = open_memstream(&all, &length);
  if (out == NULL)
    abort();
  for (size_t i = 0; i < plan->path_count; i++) {
    const struct planned_path *path = &plan->paths[i];
    int64_t numbers[3] = {path->first_unix_ns, path->bytes_before, path->is_written};
    char *text = reader_text(reader, path->text);
    fwrite(numbers, sizeof numbers, 1, out);
    fwrite(text, strlen(text) + 1, 1, out);
    free(text);
  }
  fclose(out);
  *bytes = (int)length;
  return all;
}

static bool prepare_files(const struct plan *plan, const struct reader *reader,
                          const struct options *options) {
  int size, whole, bytes;
  char problem[TARGETS_PROBLEM_BYTES] = "";
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int *counts = allocate_places(), *places = counts != NULL ? counts + size : NULL;
  char *own = pack_paths(plan, reader, &bytes);
  char *all = gather(own, bytes, counts, places, &whole);
  if (all != NULL)
    targets_prepare(all, (size_t)whole, options, problem);
  free(all);
  free(own);
  free(counts);
  return all_agree(problem, "forebay-replay --help lists what says where the files are");
}

bool plan_make(struct plan *plan, struct reader *reader, const struct options *options) {
  int64_t threads;
  *plan = (struct plan){0};
  if (!check_rank_count(reader))
    return false;
  scan(plan, reader);
  if (!options->partial && !check_trace_complete(reader))
    return false;
  MPI_Allreduce(&plan->thread_count, &threads, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
  plan->has_threads = threads > 1;
  return match_openings(plan, options->partial) && prepare_files(plan, reader, options);
}

void plan_free(struct plan *plan) {
  free(plan->openings);
  free(plan->paths);
}
