/* One file in the box that Cray's MPI prints for MPICH_MPIIO_STATS=1. Assumes merged records. Never
 * prints: the caller does. */
#include "report/hint_effect.h"
#include "report/report.h"

#include <stdio.h>

static const char line[] = "+--------------------------------------------------------+\n";

struct words {
  const char *verb, *calls, *ranks;
};

static const struct words words[DIRECTIONS] = {
    [READING] = {"read", "reads", "readers"},
    [WRITING] = {"write", "writes", "writers"},
};

static void add_number(struct text *out, const char *name, const char *of, int64_t value) {
  char label[64];
  snprintf(label, sizeof label, "%s%s", name, of);
  text_add(out, "|   %-23s = %lld\n", label, (long long)value);
}

/* A number that is not known, or an average of nothing, is NA. */
static void add_known(struct text *out, const char *name, bool is_known, int64_t value) {
  if (is_known)
    add_number(out, name, "", value);
  else
    text_add(out, "|   %-23s = NA\n", name);
}

static void add_active(const struct merged_file *file, struct text *out) {
  int64_t classes[ACTIVE_CLASSES];
  int all = file->aggregators[WRITING];
  active_classes(file, classes);
  int half = all > 1 ? all / 2 : 1;
  text_add(out, "|   %-23s = %lld,%lld,%lld,%lld (1, <= %d, > %d, %d)\n", "aggregators active",
           (long long)classes[0], (long long)classes[1], (long long)classes[2],
           (long long)classes[3], half, half, all);
}

static void add_size(struct text *out, const char *calls, int64_t bytes) {
  char label[64];
  snprintf(label, sizeof label, "total bytes for %s", calls);
  text_add(out, "|   %-23s = %lld", label, (long long)bytes);
  if (bytes >= 1 << 20)
    text_add(out, " = %lld MiB", (long long)(bytes >> 20));
  if (bytes >= 1 << 30)
    text_add(out, " = %lld GiB", (long long)(bytes >> 30));
  text_add(out, "\n");
}

static void add_block(const struct merged_file *file, enum direction direction, struct text *out) {
  const struct traffic *traffic = &file->counters.traffic[direction];
  const struct words *word = &words[direction];
  const int64_t *calls = traffic->calls;
  char label[64];
  text_add(out, "%s| MPIIO %s access patterns for %s\n", line, word->verb, file->path);
  add_number(out, "independent ", word->calls, calls[INDEPENDENT] + calls[NONBLOCKING]);
  add_number(out, "collective ", word->calls,
             calls[COLLECTIVE] + calls[NONBLOCKING_COLLECTIVE] + calls[SPLIT_COLLECTIVE]);
  add_number(out, "independent ", word->ranks, file->independent_ranks[direction]);
  add_number(out, "aggregators", "", file->aggregators[direction]);
  add_known(out, "stripe count", file->stripe_count > 0, file->stripe_count);
  add_known(out, "stripe size", file->stripe_bytes > 0, file->stripe_bytes);
  add_number(out, "system ", word->calls, traffic->system_calls);
  snprintf(label, sizeof label, "stripe sized %s", word->calls);
  add_known(out, label, file->stripe_bytes > 0, traffic->stripe_sized);
  if (direction == WRITING)
    add_active(file, out);
  add_size(out, word->calls, traffic->system_bytes);
  snprintf(label, sizeof label, "ave system %s size", word->verb);
  add_known(out, label, traffic->system_calls > 0,
            traffic->system_calls > 0 ? traffic->system_bytes / traffic->system_calls : 0);
  if (direction == WRITING) {
    add_number(out, "read-modify-write count", "", traffic->rmw_calls);
    add_number(out, "read-modify-write bytes", "", traffic->rmw_bytes);
  }
  snprintf(label, sizeof label, "number of %s gaps", word->verb);
  add_number(out, label, "", traffic->gaps);
  snprintf(label, sizeof label, "ave %s gap size", word->verb);
  add_known(out, label, traffic->gaps > 0,
            traffic->gaps > 0 ? traffic->gap_bytes / traffic->gaps : 0);
  text_add(out, "| See Forebay's docs/reference/mpi.md for explanations.\n%s", line);
}

static bool has_calls(const struct traffic *traffic) {
  int64_t sum = traffic->system_calls;
  for (int kind = 0; kind < CALL_KINDS; kind++)
    sum += traffic->calls[kind];
  return sum > 0;
}

void report_box(const struct merged_file *file, struct text *out) {
  for (int direction = DIRECTIONS - 1; direction >= 0; direction--)
    if (has_calls(&file->counters.traffic[direction]))
      add_block(file, (enum direction)direction, out);
}
