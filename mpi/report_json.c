#include "effect.h"
#include "info.h"
#include "report.h"
#include "step.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Members of an object are separated by commas; the first one has none before it. */
static void separate(struct text *out) {
  char last = out->length > 0 ? out->bytes[out->length - 1] : '{';
  if (last != '{' && last != '[')
    text_add_bytes(out, ",", 1);
}

static void add_name(struct text *out, const char *name) {
  separate(out);
  text_add(out, "\"%s\":", name);
}

static void add_integer(struct text *out, const char *name, int64_t value) {
  add_name(out, name);
  text_add(out, "%lld", (long long)value);
}

static void add_known(struct text *out, const char *name, bool is_known, int64_t value) {
  if (is_known) {
    add_integer(out, name, value);
    return;
  }
  add_name(out, name);
  text_add(out, "null");
}

/* Not as a floating-point number: the program's locale may have a decimal comma. */
static void add_seconds(struct text *out, const char *name, double value) {
  long long micros = (long long)(value * 1e6 + (value < 0 ? -0.5 : 0.5));
  const char *sign = micros < 0 ? "-" : "";
  if (micros < 0)
    micros = -micros;
  add_name(out, name);
  text_add(out, "%s%lld.%06lld", sign, micros / 1000000, micros % 1000000);
}

static void open_object(struct text *out, const char *name) {
  if (name != NULL)
    add_name(out, name);
  else
    separate(out);
  text_add(out, "{");
}

static void add_string(struct text *out, const char *name, const char *value) {
  add_name(out, name);
  text_add_json_string(out, value);
}

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

static void add_effect(const struct effect *effect, void *out) {
  open_object(out, NULL);
  add_string(out, "key", effect->key);
  add_string(out, "asked", effect->asked);
  add_string(out, "seen", effect->seen);
  text_add(out, "}");
}

static void add_all_hints(const struct joined *file, struct text *out) {
  open_object(out, "hints");
  add_hints(out, "environment", &file->hints_asked);
  add_hints(out, "program", &file->hints_of_program);
  if (file->hints_in_force.length > 0) {
    add_hints(out, "in_force", &file->hints_in_force);
  } else {
    add_name(out, "in_force");
    text_add(out, "null");
  }
  add_name(out, "without_effect");
  text_add(out, "[");
  effects_each(file, add_effect, out);
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

static void add_active(const struct joined *file, struct text *out) {
  int64_t classes[ACTIVE_CLASSES];
  active_classes(file, classes);
  add_name(out, "aggregators_active");
  text_add(out, "[%lld,%lld,%lld,%lld]", (long long)classes[0], (long long)classes[1],
           (long long)classes[2], (long long)classes[3]);
}

static void add_writers(const struct joined *file, struct text *out) {
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

static void add_traffic(const struct joined *file, enum direction direction, struct text *out) {
  const struct traffic *traffic = &file->counters.traffic[direction];
  open_object(out, direction == WRITING ? "write" : "read");
  add_calls(out, traffic->calls);
  add_integer(out, "independent_ranks", file->independent_ranks[direction]);
  add_integer(out, "asked_bytes", traffic->asked_bytes);
  add_sizes(out, "asked_sizes", traffic->asked_sizes);
  add_integer(out, "system_calls", traffic->system_calls);
  add_integer(out, "system_bytes", traffic->system_bytes);
  add_sizes(out, "system_sizes", traffic->system_sizes);
  add_integer(out, "system_failures", traffic->system_failures);
  add_integer(out, "system_ranks", file->system_ranks[direction]);
  add_integer(out, "aggregators", file->aggregators[direction]);
  add_known(out, "stripe_sized", file->stripe_bytes > 0, traffic->stripe_sized);
  add_integer(out, "gaps", traffic->gaps);
  add_integer(out, "gap_bytes", traffic->gap_bytes);
  add_integer(out, "steps_back", traffic->steps_back);
  if (direction == WRITING) {
    add_integer(out, "rmw_calls", traffic->rmw_calls);
    add_integer(out, "rmw_bytes", traffic->rmw_bytes);
    add_active(file, out);
    add_writers(file, out);
  }
  text_add(out, "}");
}

static void add_times(struct text *out, const char *name, const struct seconds *seconds) {
  open_object(out, name);
  add_seconds(out, "open", seconds->open);
  add_seconds(out, "close", seconds->close);
  add_seconds(out, "metadata", seconds->metadata);
  add_seconds(out, "sync", seconds->sync);
  for (int direction = DIRECTIONS - 1; direction >= 0; direction--) {
    double calls = seconds->traffic[direction].calls, data = seconds->traffic[direction].data;
    double other = seconds->traffic[direction].other;
    open_object(out, direction == WRITING ? "write" : "read");
    add_seconds(out, "calls", calls);
    add_seconds(out, "data", data);
    add_seconds(out, "other_system", other);
    if (strcmp(name, "sum") == 0) /* the largest of each part do not belong to one rank */
      add_seconds(out, "rest", calls - data - other);
    add_seconds(out, "data_outside", seconds->traffic[direction].outside);
    text_add(out, "}");
  }
  text_add(out, "}");
}

static void add_file(const struct joined *file, struct text *out) {
  open_object(out, NULL);
  add_string(out, "path", file->path);
  add_integer(out, "ranks", file->ranks);
  add_integer(out, "opens", file->counters.opens);
  add_integer(out, "open_failures", file->counters.open_failures);
  add_integer(out, "not_closed", file->counters.opens - file->counters.closes);
  add_string(out, "opened_by", file->opened_by);
  add_known(out, "stripe_count", file->stripe_count > 0, file->stripe_count);
  add_known(out, "stripe_bytes", file->stripe_bytes > 0, file->stripe_bytes);
  add_all_hints(file, out);
  add_traffic(file, WRITING, out);
  add_traffic(file, READING, out);
  add_integer(out, "locks", file->counters.locks);
  add_integer(out, "truncations", file->counters.truncations);
  add_integer(out, "syncs", file->counters.syncs);
  open_object(out, "seconds");
  add_times(out, "sum", &file->sum);
  add_times(out, "slowest", &file->slowest);
  text_add(out, "}}");
}

void report_json(const struct job *job, double wall_s, struct text *out) {
  text_add(out, "{");
  step_header_json(wall_s, out);
  add_integer(out, "files_dropped", job->dropped);
  add_name(out, "files");
  text_add(out, "[");
  for (int i = 0; i < job->file_count; i++)
    add_file(job->files[i], out);
  text_add(out, "]}\n");
}
