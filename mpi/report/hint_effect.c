#include "report/hint_effect.h"

#include "settings/hints.h"
#include "settings/info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* "1048576" and "1048576 " are one value, "TRUE" and "true" too. */
static bool is_same_value(const char *one, const char *other) {
  char *one_end, *other_end;
  long long first = strtoll(one, &one_end, 10), second = strtoll(other, &other_end, 10);
  if (one_end != one && other_end != other && one_end[strspn(one_end, " ")] == '\0' &&
      other_end[strspn(other_end, " ")] == '\0')
    return first == second;
  return strcasecmp(one, other) == 0;
}

/* What the MPI says, if it says anything. */
static bool find_hint_not_in_force(const struct merged_file *file, struct hint_effect *effect) {
  const char *in_force = text_of(&file->hints_in_force);
  char value[sizeof effect->asked];
  if (in_force[0] == '\0')
    return false;
  if (!info_value(in_force, effect->key, value, sizeof value)) {
    snprintf(effect->seen, sizeof effect->seen, "this MPI does not know it");
    return true;
  }
  snprintf(effect->seen, sizeof effect->seen, "in force: %s", value);
  return !is_same_value(effect->asked, value);
}

static void describe_writers(const struct merged_file *file, int seen, struct hint_effect *effect) {
  char ignored[8];
  bool is_listed =
      info_value(text_of(&file->hints_asked), "cb_config_list", ignored, sizeof ignored);
  const char *why = seen == file->ranks ? "; no more have it open"
                    : is_listed
                        ? ""
                        : "; by default one for each node, cb_config_list=#*:*# allows more";
  snprintf(effect->seen, sizeof effect->seen, "%d rank(s) wrote in collective calls%s", seen, why);
}

/* HDF5 or the file system took it, or nobody did. */
static bool find_unused_hint(const struct merged_file *file, struct hint_effect *effect) {
  if (strcmp(effect->key, LAZY_IO) == 0) {
    snprintf(effect->seen, sizeof effect->seen, "%s",
             "the file is not in a namespace of several nodes that offers it");
    return strcmp(effect->asked, "enable") == 0 && file->counters.lazy_opens == 0;
  }
  snprintf(effect->seen, sizeof effect->seen, "%s",
           "no H5Fcreate of HDF5 1.10 or later made this file with an alignment");
  return file->counters.hdf5_alignments == 0;
}

/* What the system calls show, whatever the MPI says. */
static bool find_contradicting_calls(const struct merged_file *file, struct hint_effect *effect) {
  const struct traffic *writes = &file->counters.traffic[WRITING];
  int seen = file->aggregators[WRITING];
  if (strcmp(effect->key, "cb_nodes") == 0 && seen > 0 && seen < atoi(effect->asked)) {
    describe_writers(file, seen, effect);
    return true;
  }
  if (strcmp(effect->key, "romio_ds_write") == 0 && strcmp(effect->asked, "disable") == 0 &&
      writes->rmw_calls > 0) {
    snprintf(effect->seen, sizeof effect->seen, "%lld reads were made in order to write",
             (long long)writes->rmw_calls);
    return true;
  }
  return false;
}

void hints_without_effect_each(const struct merged_file *file,
                               void (*then)(const struct hint_effect *, void *), void *context) {
  const char *rest = text_of(&file->hints_asked);
  struct info_line line;
  struct hint_effect effect;
  while (info_next(&rest, &line)) {
    snprintf(effect.key, sizeof effect.key, "%.*s", line.key_bytes, line.key);
    snprintf(effect.asked, sizeof effect.asked, "%.*s", line.value_bytes, line.value);
    bool had_none = hint_is_for_mpi(effect.key) ? find_contradicting_calls(file, &effect) ||
                                                      find_hint_not_in_force(file, &effect)
                                                : find_unused_hint(file, &effect);
    if (had_none)
      then(&effect, context);
  }
}
