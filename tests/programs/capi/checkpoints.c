/* checkpoints DIRECTORY TARGET COUNT: writes so many checkpoints, and has only the newest drained:
 * each one is to be staged out at the job's end once it is complete, and the one before is not any
 * more. Does not end by itself if COUNT is negative: then it says what it wrote last and waits to
 * be killed. */
#include <datawarp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void must(int rc, const char *what) {
  if (rc == 0)
    return;
  fprintf(stderr, "checkpoints: %s: %d\n", what, rc);
  exit(1);
}

int main(int argc, char **argv) {
  char file[2][4096], target[4096];
  int count;
  if (argc != 4)
    return 2;
  count = abs(atoi(argv[3]));
  for (int i = 0; i < count; i++) {
    FILE *checkpoint;
    snprintf(file[i % 2], sizeof file[0], "%s/checkpoint.%d", argv[1], i);
    snprintf(target, sizeof target, "%s/checkpoint.%d", argv[2], i);
    checkpoint = fopen(file[i % 2], "w");
    if (checkpoint == NULL)
      return 1;
    fprintf(checkpoint, "step %d\n", i);
    fclose(checkpoint);
    must(dw_stage_file_out(file[i % 2], target, DW_STAGE_AT_JOB_END), "at the job's end");
    if (i > 0)
      must(dw_stage_file_out(file[(i + 1) % 2], NULL, DW_REVOKE_STAGE_AT_JOB_END), "revoke");
  }
  if (atoi(argv[3]) < 0) {
    FILE *said = fopen("said", "w");
    if (said == NULL)
      return 1;
    fclose(said);
    pause();
  }
  return 0;
}
