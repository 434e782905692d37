#define _GNU_SOURCE
#include "report/step_record.h"

#include "base/atomic_file.h"
#include "base/message.h"
#include "record/elsewhere.h"
#include "report/report_header.h"
#include "settings/settings.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
  UNFINISHED_BYTES_MAX = 131072, /* all of it with every byte escaped */
  STEP_PATH_BYTES_MAX = PATH_MAX + 128,
};

static void name_step(char path[STEP_PATH_BYTES_MAX]) {
  snprintf(path, STEP_PATH_BYTES_MAX, "%s/step-%s.json", settings.profile_directory,
           settings.step_id);
}

/* Says it once: a directory that is gone or full at the begin mostly is so at the end. */
static void write_report(const struct text *json) {
  static bool is_said;
  char path[STEP_PATH_BYTES_MAX];
  name_step(path);
  bool is_written = atomic_file_write(path, json);
  unrecorded_add(WRITING, is_written ? (int64_t)json->length : 0);
  if (is_written || is_said)
    return;
  is_said = true;
  message_print("%s: the record of this program could not be written: %s\n"
                "hint: the job itself goes on unharmed; %s names the directory",
                path, strerror(errno), PROFILE_VARIABLE);
}

void step_begin(void) {
  if (!settings.wants_profile && !settings.wants_json)
    return;
  report_count_hosts();
  if (settings.rank != 0 || !settings.wants_profile)
    return;
  struct text json = {0};
  text_add(&json, "{");
  report_header_json(-1, &json);
  text_add(&json, ",\"files_dropped\":0,\"files\":[]}\n");
  write_report(&json);
  text_clear(&json);
}

void step_end(const struct text *json) { write_report(json); }

/* Any rank may be the one that aborts. What it finds is an object, and it adds a member in front;
 * if several abort at once, one of them is noted. */
void step_note_abort(int code) {
  static char json[UNFINISHED_BYTES_MAX];
  char path[STEP_PATH_BYTES_MAX], temporary[STEP_PATH_BYTES_MAX];
  size_t head = (size_t)snprintf(json, sizeof json, "{\"aborted\":{\"rank\":%d,\"code\":%d}",
                                 settings.rank, code);
  name_step(path);
  snprintf(temporary, sizeof temporary, "%s/step-%s.aborted-%d", settings.profile_directory,
           settings.step_id, settings.rank);
  char *found = json + head;
  ssize_t length = file_read(path, found, sizeof json - head);
  if (length < 2 || found[0] != '{' || found[length - 1] != '\n')
    return; /* not there, or not whole: then it says no more than that it did not finish */
  found[0] = ',';
  if (file_write(temporary, json, head + (size_t)length))
    rename(temporary, path);
  else
    unlink(temporary);
}
