#include "report/rank_merge.c"

#include "base/json.h"
#include "hooks/observe.h"
#include "report/report.h"

#include <fcntl.h>
#include <stdio.h>

/* merged PATH RANKS: what so many ranks tell that each wrote as many bytes as its number, and 1, to
 * the file; without the messages between them. */
int main(int argc, char **argv) {
  int ranks = argc == 3 ? atoi(argv[2]) : 0;
  struct job *job = job_new(ranks);
  struct text json = {0};
  for (int rank = 0; rank < ranks; rank++) {
    struct text own = {0};
    files_start();
    files_observe(0, 0);
    struct file *file = files_for_path(argv[1], LAYER_POSIX);
    file->tally->counters.opens = 1;
    file->tally->counters.traffic[WRITING] = (struct traffic){0};
    file->tally->system_heat = (struct heat){0};
    observe_data(file, (struct transfer){WRITING, 0, 0, rank + 1, 0.05}, 0.01);
    pack(&own);
    job_add_rank(job, rank, &own);
    text_clear(&own);
  }
  text_add(&json, "{");
  report_members_json(job, 1, &json);
  puts(text_of(&json));
  puts("}");
  return 0;
}
