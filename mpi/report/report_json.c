/* The job as JSON (docs/reference/mpi.md). Assumes merged records. Never writes a file: the caller
 * does. */
#include "base/json.h"
#include "report/hint_effect.h"
#include "report/report.h"
#include "settings/info.h"

#include <stdio.h>
#include <string.h>

static const char *const layers[LAYERS] = {"mpiio", "posix", "stdio"};

/* Lines of KEY=VALUE as an object of strings. */
static void add_hints(struct text *out, const char *name, const struct text *lines) {
  const char *rest = text_of(lines);
  struct info_line line;
  open_object(out, name);
  while (info_next(&rest, &line)) {
    char piece[2048];
    separate(out);
    snprintf(piece, sizeof piece, "%.*s", line.key_bytes, line.key);
    text_add_json_string(out, piece);
    text_add(out, ":");
    snprintf(piece, sizeof piece, "%.*s", line.value_bytes, line.value);
    text_add_json_string(out, piece);
  }
  text_add(out, "}");
}

static void add_effect(const struct hint_effect *effect, void *out) {
  open_object(out, NULL);
  add_string(out, "key", effect->key);
  add_string(out, "asked", effect->asked);
  add_string(out, "seen", effect->seen);
  text_add(out, "}");
}

static void add_all_hints(const struct merged_file *file, struct text *out) {
  open_object(out, "hints");
  add_hints(out, "environment", &file->hints_asked);
  add_hints(out, "program", &file->hints_of_program);
  if (file->hints_in_force.length > 0)
    add_hints(out, "in_force", &file->hints_in_force);
  else
    add_string(out, "in_force", NULL);
  add_name(out, "without_effect");
  text_add(out, "[");
  hints_without_effect_each(file, add_effect, out);
  text_add(out, "]}");
}

static void add_sizes(struct text *out, const char *name, const int64_t sizes[SIZE_CLASSES]) {
  add_name(out, name);
  text_add(out, "[");
  for (int class = 0; class < SIZE_CLASSES; class ++)
    text_add(out, "%s%lld", class > 0 ? "," : "", (long long)sizes[class]);
  text_add(out, "]");
}

static void add_calls(struct text *out, const int64_t calls[CALL_KINDS]) {
  static const char *const names[CALL_KINDS] = {
      [INDEPENDENT] = "independent",           [COLLECTIVE] = "collective",
      [NONBLOCKING] = "nonblocking",           [NONBLOCKING_COLLECTIVE] = "nonblocking_collective",
      [SPLIT_COLLECTIVE] = "split_collective",
  };
  open_object(out, "calls");
  for (int kind = 0; kind < CALL_KINDS; kind++)
    add_integer(out, names[kind], calls[kind]);
  text_add(out, "}");
}

static void add_active(const struct merged_file *file, struct text *out) {
  int64_t classes[ACTIVE_CLASSES];
  active_classes(file, classes);
  add_name(out, "aggregators_active");
  text_add(out, "[%lld,%lld,%lld,%lld]", (long long)classes[0], (long long)classes[1],
           (long long)classes[2], (long long)classes[3]);
}

static void add_writers(const struct merged_file *file, struct text *out) {
  add_name(out, "writers");
  text_add(out, "[");
  for (int i = 0; i < file->writer_count; i++) {
    const struct writer *writer = &file->writers[i];
    open_object(out, NULL);
    add_integer(out, "rank", writer->rank);
    add_name(out, "aggregator");
    text_add(out, writer->is_aggregator ? "true" : "false");
    add_integer(out, "system_calls", writer->calls);
    add_integer(out, "bytes", writer->bytes);
    text_add(out, "}");
  }
  text_add(out, "]");
}

static void add_span(struct text *out, const char *name, const char *first, const char *last,
                     const struct span *span) {
  open_object(out, name);
  add_seconds(out, first, span->first);
  add_seconds(out, last, span->last);
  text_add(out, "}");
}

static void add_common_sizes(struct text *out, const char *name,
                             const struct size_count table[SIZES_MERGED_MAX]) {
  struct size_count commonest[SIZES_REPORTED_MAX];
  int count = sizes_commonest(table, SIZES_MERGED_MAX, commonest);
  add_name(out, name);
  text_add(out, "[");
  for (int i = 0; i < count; i++)
    text_add(out, "%s[%lld,%lld]", i > 0 ? "," : "", (long long)commonest[i].bytes,
             (long long)commonest[i].calls);
  text_add(out, "]");
}

static void add_extreme(struct text *out, const char *name, const struct extreme *extreme) {
  open_object(out, name);
  add_integer(out, "rank", extreme->rank);
  add_seconds(out, "seconds", extreme->seconds);
  add_integer(out, "bytes", extreme->bytes);
  text_add(out, "}");
}

static void add_rank_seconds(const struct merged_file *file, enum direction direction,
                             struct text *out) {
  if (file->ranks == 1) {
    add_string(out, "rank_seconds", NULL);
    return;
  }
  open_object(out, "rank_seconds");
  add_extreme(out, "fastest", &file->fastest_rank[direction]);
  add_extreme(out, "slowest", &file->slowest_rank[direction]);
  text_add(out, "}");
}

/* What files of all layers have. */
static void add_system_calls(const struct merged_file *file, enum direction direction,
                             struct text *out) {
  const struct traffic *traffic = &file->counters.traffic[direction];
  add_integer(out, "system_calls", traffic->system_calls);
  add_integer(out, "system_bytes", traffic->system_bytes);
  add_sizes(out, "system_sizes", traffic->system_sizes);
  add_integer(out, "system_failures", traffic->system_failures);
  add_integer(out, "end_bytes", file->end_bytes[direction]);
  add_integer(out, "system_ranks", file->system_ranks[direction]);
  add_known(out, "stripe_sized", file->stripe_bytes > 0, traffic->stripe_sized);
  add_integer(out, "gaps", traffic->gaps);
  add_integer(out, "gap_bytes", traffic->gap_bytes);
  add_integer(out, "steps_back", traffic->steps_back);
  add_integer(out, "consecutive", traffic->consecutive);
  add_span(out, "moments", "first", "last", &file->moments.program[direction]);
  add_span(out, "system_moments", "first", "last", &file->moments.system[direction]);
  add_common_sizes(out, "common_sizes", file->system_sizes[direction]);
  add_common_sizes(out, "asked_common_sizes", file->asked_sizes[direction]);
  add_rank_seconds(file, direction, out);
  if (direction == WRITING)
    add_writers(file, out);
}

static void add_traffic(const struct merged_file *file, enum direction direction,
                        struct text *out) {
  const struct traffic *traffic = &file->counters.traffic[direction];
  open_object(out, direction == WRITING ? "write" : "read");
  add_calls(out, traffic->calls);
  add_integer(out, "independent_ranks", file->independent_ranks[direction]);
  add_integer(out, "asked_bytes", traffic->asked_bytes);
  add_sizes(out, "asked_sizes", traffic->asked_sizes);
  add_integer(out, "aggregators", file->aggregators[direction]);
  add_system_calls(file, direction, out);
  if (direction == WRITING) {
    add_integer(out, "rmw_calls", traffic->rmw_calls);
    add_integer(out, "rmw_bytes", traffic->rmw_bytes);
    add_active(file, out);
  }
  text_add(out, "}");
}

static void add_traffic_times(const struct seconds *seconds, enum direction direction,
                              enum layer layer, bool is_sum, struct text *out) {
  double calls = seconds->traffic[direction].calls, data = seconds->traffic[direction].data;
  double other = seconds->traffic[direction].other;
  open_object(out, direction == WRITING ? "write" : "read");
  if (layer == LAYER_MPIIO)
    add_seconds(out, "calls", calls);
  add_seconds(out, "data", data);
  if (layer == LAYER_MPIIO) {
    add_seconds(out, "other_system", other);
    if (is_sum) /* the largest of each part do not belong to one rank */
      add_seconds(out, "rest", calls - data - other);
    add_seconds(out, "data_outside", seconds->traffic[direction].outside);
  }
  text_add(out, "}");
}

static void add_times(struct text *out, const char *name, const struct seconds *seconds,
                      enum layer layer) {
  open_object(out, name);
  add_seconds(out, "open", seconds->open);
  add_seconds(out, "close", seconds->close);
  add_seconds(out, "metadata", seconds->metadata);
  add_seconds(out, "sync", seconds->sync);
  add_traffic_times(seconds, WRITING, layer, strcmp(name, "sum") == 0, out);
  add_traffic_times(seconds, READING, layer, strcmp(name, "sum") == 0, out);
  text_add(out, "}");
}

static void add_mpi_file(const struct merged_file *file, struct text *out) {
  add_string(out, "opened_by", file->opened_by);
  add_integer(out, "sync_calls", file->counters.sync_calls);
  add_integer(out, "lazy_opens", file->counters.lazy_opens);
  add_all_hints(file, out);
  add_traffic(file, WRITING, out);
  add_traffic(file, READING, out);
}

/* Those that were made at all. */
static void add_name_calls(const struct counters *counters, struct text *out) {
  static const char *const names[NAME_CALLS] = {
      [NAME_ACCESS] = "access",   [NAME_UNLINK] = "unlink",         [NAME_MKDIR] = "mkdir",
      [NAME_RMDIR] = "rmdir",     [NAME_RENAME] = "rename",         [NAME_LINK] = "link",
      [NAME_OPENDIR] = "opendir", [NAME_ATTRIBUTES] = "attributes", [NAME_READDIR] = "readdir",
  };
  open_object(out, "name_calls");
  for (int call = 0; call < NAME_CALLS; call++)
    if (counters->names[call] > 0)
      add_integer(out, names[call], counters->names[call]);
  text_add(out, "}");
}

static void add_direct_file(const struct merged_file *file, struct text *out) {
  add_integer(out, "seeks", file->counters.seeks);
  add_integer(out, "stats", file->counters.stats);
  add_integer(out, "mmaps", file->counters.mmaps);
  add_integer(out, "mapped_bytes", file->counters.mapped_bytes);
  add_integer(out, "mapped_to_write_bytes", file->counters.mapped_to_write_bytes);
  add_name_calls(&file->counters, out);
  for (int direction = DIRECTIONS - 1; direction >= 0; direction--) {
    open_object(out, direction == WRITING ? "write" : "read");
    add_system_calls(file, (enum direction)direction, out);
    text_add(out, "}");
  }
}

static void add_file(const struct merged_file *file, struct text *out) {
  open_object(out, NULL);
  add_string(out, "path", file->path);
  add_string(out, "layer", layers[file->layer]);
  add_integer(out, "ranks", file->ranks);
  add_known(out, "rank", file->ranks == 1, file->rank);
  add_integer(out, "opens", file->counters.opens);
  add_integer(out, "open_failures", file->counters.open_failures);
  add_integer(out, "inherited", file->counters.inherited);
  add_integer(out, "not_closed", file->counters.opens - file->counters.closes);
  add_known(out, "stripe_count", file->stripe_count > 0, file->stripe_count);
  add_known(out, "stripe_bytes", file->stripe_bytes > 0, file->stripe_bytes);
  add_integer(out, "locks", file->counters.locks);
  add_integer(out, "truncations", file->counters.truncations);
  add_integer(out, "syncs", file->counters.syncs);
  add_integer(out, "not_aligned", file->counters.not_aligned);
  add_known(out, "alignment_bytes", file->alignment_bytes > 0, file->alignment_bytes);
  add_span(out, "moments", "open", "close", &file->moments.opened);
  if (file->layer == LAYER_MPIIO)
    add_mpi_file(file, out);
  else
    add_direct_file(file, out);
  open_object(out, "seconds");
  add_times(out, "sum", &file->sum, file->layer);
  add_times(out, "slowest", &file->slowest, file->layer);
  text_add(out, "}}");
}

static void add_heat_rows(struct text *out, enum direction direction, const struct heat *rows,
                          int count) {
  add_name(out, direction == WRITING ? "write" : "read");
  text_add(out, "[");
  for (int row = 0; row < count; row++)
    for (int bin = 0; bin < HEAT_BINS; bin++) {
      int64_t bytes = rows[row].bytes[direction][bin];
      if (bytes == 0)
        continue;
      separate(out);
      text_add(out, "[%d,%d,%lld]", row, bin, (long long)bytes);
    }
  text_add(out, "]");
}

/* Makes the bins of all rows equally long, and long enough for the whole run; returns how long. */
static int level(struct heat *rows, int count, double wall_s) {
  int doublings = heat_doublings_for(wall_s);
  for (int row = 0; row < count; row++)
    if (rows[row].doublings > doublings)
      doublings = rows[row].doublings;
  for (int row = 0; row < count; row++)
    heat_widen(&rows[row], doublings);
  return doublings;
}

/* The bins that the run reached, and those that hold bytes. */
static int used_bins(const struct heat *rows, int count, double wall_s) {
  int used = (int)(wall_s / heat_bin_s(rows[0].doublings)) + 1;
  for (int row = 0; row < count; row++)
    for (int bin = 0; bin < HEAT_BINS; bin++)
      if (bin >= used && rows[row].bytes[READING][bin] + rows[row].bytes[WRITING][bin] > 0)
        used = bin + 1;
  return used < HEAT_BINS ? used : HEAT_BINS;
}

static bool is_cold(const struct heat *rows, int count) {
  for (int row = 0; row < count; row++)
    for (int bin = 0; bin < HEAT_BINS; bin++)
      if (rows[row].bytes[READING][bin] + rows[row].bytes[WRITING][bin] > 0)
        return false;
  return true;
}

static void add_heat(const struct job *job, double wall_s, struct text *out) {
  add_name(out, "heat");
  text_add(out, "[");
  for (int layer = 0; layer < LAYERS; layer++) {
    struct heat *rows = job->heat[layer];
    if (is_cold(rows, job->rows))
      continue;
    int doublings = level(rows, job->rows, wall_s);
    open_object(out, NULL);
    add_string(out, "layer", layers[layer]);
    add_integer(out, "bins", used_bins(rows, job->rows, wall_s));
    add_seconds(out, "bin_s", heat_bin_s(doublings));
    add_integer(out, "ranks_per_row", job->ranks_per_row);
    add_integer(out, "rows", job->rows);
    add_heat_rows(out, WRITING, rows, job->rows);
    add_heat_rows(out, READING, rows, job->rows);
    text_add(out, "}");
  }
  text_add(out, "]");
}

static void add_files(const struct job *job, bool joint, struct text *out) {
  add_name(out, joint ? "other_files" : "files");
  text_add(out, "[");
  for (int i = 0; i < job->file_count; i++)
    if (joint == (strcmp(job->files[i]->path, OTHER_FILES) == 0))
      add_file(job->files[i], out);
  text_add(out, "]");
}

static void add_kernel_counts(const struct job *job, struct text *out) {
  add_integer(out, "counted_ranks", job->counted_ranks);
  add_name(out, "kernel_counts");
  text_add(out, "[");
  for (const struct kernel_count *sum = job->kernel_counts; sum != NULL; sum = sum->next) {
    open_object(out, NULL);
    add_string(out, "host", sum->count.host);
    add_integer(out, "ranks", sum->ranks);
    add_integer(out, "read_bytes", sum->count.counted[READING]);
    add_integer(out, "written_bytes", sum->count.counted[WRITING]);
    add_integer(out, "elsewhere_read_bytes", sum->count.elsewhere[READING]);
    add_integer(out, "elsewhere_written_bytes", sum->count.elsewhere[WRITING]);
    text_add(out, "}");
  }
  text_add(out, "]");
}

void report_members_json(const struct job *job, double wall_s, struct text *out) {
  add_integer(out, "files_dropped", job->dropped);
  add_integer(out, "files_joined", job->joined);
  open_object(out, "io_s");
  add_seconds(out, "sum", job->io_sum_s);
  add_seconds(out, "slowest", job->io_slowest_s);
  text_add(out, "}");
  add_kernel_counts(job, out);
  add_heat(job, wall_s, out);
  add_files(job, false, out);
  add_files(job, true, out);
}
