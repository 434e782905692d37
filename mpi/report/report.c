/* Makes the reports of an MPI program: gathers the records on rank 0, prints and writes. Assumes
 * that all ranks call it before MPI is finalised. Never fails the program: a report that cannot be
 * written is a message. */
#include "report/report.h"

#include "base/atomic_file.h"
#include "base/message.h"
#include "record/file_table.h"
#include "report/hint_effect.h"
#include "report/report_header.h"
#include "report/step_record.h"
#include "settings/settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void report_json(const struct job *job, double wall_s, struct text *out) {
  text_add(out, "{");
  report_header_json(wall_s, out);
  report_members_json(job, wall_s, out);
  text_add(out, "}\n");
}

static void write_json(const struct job *job, double wall_s) {
  struct text json = {0};
  report_json(job, wall_s, &json);
  if (settings.wants_profile)
    step_end(&json);
  if (settings.wants_json && !atomic_file_write(settings.json_path, &json))
    message_print("%s: the report could not be written: %s\nhint: %s names a file on rank 0's node",
                  settings.json_path, strerror(errno), JSON_VARIABLE);
  text_clear(&json);
}

static void print_boxes(const struct job *job) {
  for (int i = 0; i < job->file_count; i++) {
    if (job->files[i]->layer != LAYER_MPIIO)
      continue;
    struct text box = {0};
    report_box(job->files[i], &box);
    message_write(text_of(&box));
    text_clear(&box);
  }
}

static void warn_hint_effect(const struct hint_effect *effect, void *path) {
  message_print("%s: hint %s=%s had no effect: %s", (const char *)path, effect->key, effect->asked,
                effect->seen);
}

/* The emulation hooks the same calls. Behind it, we see the real system calls and not their delays.
 */
static void warn_preload_order(const struct job *job) {
  for (int i = 0; i < job->file_count; i++)
    if (strcmp(job->files[i]->opened_by, "libforebay_pfsmodel_preload.so") == 0) {
      message_print("the emulation stands before this library in LD_PRELOAD, so the delays of the "
                    "emulated file system are not counted as data I/O\n"
                    "hint: LD_PRELOAD=.../libforebay_mpi.so:$LD_PRELOAD");
      return;
    }
}

/* Warns of anomalies only where a report was requested; the record of a job is read later. */
static void warn_anomalies(const struct job *job) {
  bool is_asked_for = settings.wants_box || settings.wants_json;
  if (is_asked_for)
    warn_preload_order(job);
  for (int i = 0; i < job->file_count; i++) {
    const struct merged_file *file = job->files[i];
    hints_without_effect_each(file, warn_hint_effect, file->path);
    if (is_asked_for && file->layer == LAYER_MPIIO && file->counters.opens > file->counters.closes)
      message_print("%s was still open in MPI_Finalize on %lld rank(s)", file->path,
                    (long long)(file->counters.opens - file->counters.closes));
  }
  if (job->dropped > 0)
    message_print("%lld opened file(s) found no room in the report (%d on a rank)",
                  (long long)job->dropped, FILES_MAX);
}

void report_make(double wall_s) {
  static struct job *job; /* never freed, and no leak: the process ends */
  job = merge_ranks();
  if (settings.rank != 0)
    return;
  if (job == NULL) {
    message_print("there is no memory for the report");
    return;
  }
  if (settings.wants_box)
    print_boxes(job);
  if (settings.wants_json || settings.wants_profile)
    write_json(job, wall_s);
  warn_anomalies(job);
}
