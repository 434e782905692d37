/* contend DIRECTORY TARGET COUNT: two threads are at one file each time: the one ends what was to
 * be done with it at the job's end, the other asks for it again. Prints the names of those that are
 * asked for afterwards. */
#include <datawarp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static char file[4096], target[4096];
static pthread_barrier_t both;

static void must(int rc, const char *what) {
  if (rc == 0)
    return;
  fprintf(stderr, "contend: %s: %d\n", what, rc);
  exit(1);
}

static void ask(void) {
  must(dw_stage_file_out(file, target, DW_STAGE_AT_JOB_END), "at the job's end");
}

static void *ask_anew(void *nothing) {
  pthread_barrier_wait(&both);
  ask();
  return nothing;
}

int main(int argc, char **argv) {
  int complete, pending, deferred, failed;
  if (argc != 4)
    return 2;
  pthread_barrier_init(&both, NULL, 2);
  for (int i = 0; i < atoi(argv[3]); i++) {
    pthread_t other;
    FILE *made;
    snprintf(file, sizeof file, "%s/%d", argv[1], i);
    snprintf(target, sizeof target, "%s/%d", argv[2], i);
    made = fopen(file, "w");
    if (made == NULL)
      return 1;
    fclose(made);
    ask();
    pthread_create(&other, NULL, ask_anew, NULL);
    pthread_barrier_wait(&both);
    must(dw_terminate_file_stage(file), "terminate");
    pthread_join(other, NULL);
    if (dw_query_file_stage(file, &complete, &pending, &deferred, &failed) == 0 && deferred == 1)
      printf("%d\n", i);
  }
  return 0;
}
