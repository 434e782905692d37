#define _GNU_SOURCE
#include "issue.h"

#include "memory.h"
#include "replay_thread.h"

#include <time.h>

/* A call may begin when all calls have ended that had ended when it began in the trace: the order
 * in which the threads' calls were possible once is possible again. */
static void await_turn(struct rank *rank, const struct traced_call *call) {
  if (rank->plan->thread_count < 2)
    return;
  pthread_mutex_lock(&rank->lock);
  while (rank->done < call->index - call->overlap)
    pthread_cond_wait(&rank->changed, &rank->lock);
  pthread_mutex_unlock(&rank->lock);
}

static void mark_done(struct rank *rank, const struct traced_call *call) {
  if (rank->plan->thread_count < 2)
    return;
  pthread_mutex_lock(&rank->lock);
  rank->is_done[call->index] = 1;
  while (rank->done < rank->plan->call_count && rank->is_done[rank->done])
    rank->done++;
  pthread_cond_broadcast(&rank->changed);
  pthread_mutex_unlock(&rank->lock);
}

static void wait_think_time(struct replay_thread *self, double share, int64_t ticks) {
  double wait_s = share * (double)ticks * (double)self->reader.header.tick_ns * 1e-9;
  if (wait_s <= 0)
    return;
  struct timespec pause = {(time_t)wait_s, (long)((wait_s - (double)(time_t)wait_s) * 1e9)};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
  self->outcome.think_s += wait_s;
}

static void note_difference(struct replay_thread *self, const struct traced_call *call, int code) {
  struct outcome *outcome = &self->outcome;
  char reason[MPI_MAX_ERROR_STRING + 1] = "it succeeded, and failed in the trace";
  int length;
  if (outcome->differences++ > 0)
    return;
  if (code != MPI_SUCCESS)
    MPI_Error_string(code, reason, &length);
  snprintf(outcome->difference, sizeof outcome->difference, "%s, call %lld: %s", self->reader.path,
           (long long)call->index, reason);
}

static void issue_one(struct replay_thread *self, const struct traced_call *call) {
  double start_s = MPI_Wtime();
  int code =
      is_system_call(call->tag) ? issue_system_call(self, call) : issue_file_call(self, call);
  self->outcome.io_s += MPI_Wtime() - start_s;
  bool is_issued = code != NOT_ISSUED && code != SKIPPED;
  self->outcome.calls += is_issued;
  self->outcome.skipped += code == NOT_ISSUED;
  if (is_issued && (code == MPI_SUCCESS) != (call->code == TRACE_SUCCESS))
    note_difference(self, call, code);
}

/* The calls of one thread, the others' passed over. */
static void *issue_thread(void *argument) {
  struct replay_thread *self = argument;
  struct rank *rank = self->rank;
  struct traced_call call;
  int64_t last_end = 0;
  while (reader_next(&self->reader, &call)) {
    if (call.thread != self->thread || trace_is_of_mpi(call.tag))
      continue;
    wait_think_time(self, rank->options->think_share, last_end > 0 ? call.start - last_end : 0);
    last_end = call.end;
    await_turn(rank, &call);
    issue_one(self, &call);
    mark_done(rank, &call);
  }
  return NULL;
}

static void add(struct outcome *sum, const struct outcome *part) {
  sum->calls += part->calls;
  sum->bytes += part->bytes;
  sum->skipped += part->skipped;
  if (sum->differences == 0)
    memcpy(sum->difference, part->difference, sizeof sum->difference);
  sum->differences += part->differences;
  sum->io_s += part->io_s;
  sum->think_s += part->think_s;
}

static struct rank rank_for(const struct plan *plan, const struct reader *reader,
                            const struct options *options) {
  struct rank rank = {
      .plan = plan,
      .options = options,
      .handles = memory_zeroed(plan->opening_count, sizeof *rank.handles),
      .requests = memory_zeroed((size_t)plan->request_count, sizeof *rank.requests),
      .path_count = reader->definitions[TRACE_TEXT].count,
      .by_path = memory_zeroed(reader->definitions[TRACE_TEXT].count, sizeof *rank.by_path),
      .is_done = memory_zeroed((size_t)plan->call_count, sizeof *rank.is_done),
      .lock = PTHREAD_MUTEX_INITIALIZER,
      .changed = PTHREAD_COND_INITIALIZER,
  };
  for (int64_t i = 0; i < plan->request_count; i++)
    rank.requests[i] = MPI_REQUEST_NULL;
  return rank;
}

static void free_rank(struct rank *rank) {
  free(rank->handles);
  free(rank->requests);
  free(rank->by_path);
  free(rank->is_done);
}

/* Operations whose completion is not in the trace, because the program was cut short. */
static void complete_rest(struct rank *rank) {
  for (int64_t i = 0; i < rank->plan->request_count; i++)
    MPI_Wait(&rank->requests[i], MPI_STATUS_IGNORE);
}

static bool start_thread(struct replay_thread *self, struct rank *rank, int64_t thread,
                         const char *directory, int number) {
  *self = (struct replay_thread){.rank = rank, .thread = thread};
  if (!reader_open(&self->reader, directory, number))
    return false;
  self->types.reader = &self->reader;
  return true;
}

bool issue_all(const struct plan *plan, const struct reader *reader, const struct options *options,
               struct outcome *outcome) {
  int64_t count = plan->thread_count;
  struct rank rank = rank_for(plan, reader, options);
  struct replay_thread *members = memory_zeroed((size_t)count, sizeof *members);
  pthread_t *threads = memory_zeroed((size_t)count, sizeof *threads);
  bool is_good = true;
  *outcome = (struct outcome){0};
  for (int64_t i = 0; i < count && is_good; i++)
    is_good = start_thread(&members[i], &rank, i, options->trace, (int)reader->header.rank);
  for (int64_t i = 1; i < count && is_good; i++)
    if (pthread_create(&threads[i], NULL, issue_thread, &members[i]) != 0) {
      fprintf(stderr, "forebay-replay: thread %lld of the trace cannot be started\n", (long long)i);
      MPI_Abort(MPI_COMM_WORLD, 1); /* those that run would wait for it for ever */
    }
  if (is_good && count > 0)
    issue_thread(&members[0]);
  for (int64_t i = 0; i < count && is_good; i++) {
    if (i > 0)
      pthread_join(threads[i], NULL);
    add(outcome, &members[i].outcome);
  }
  complete_rest(&rank);
  for (int64_t i = 0; i < count && is_good; i++) {
    types_free(&members[i].types);
    reader_close(&members[i].reader);
  }
  free_rank(&rank);
  free(members);
  free(threads);
  return is_good;
}
