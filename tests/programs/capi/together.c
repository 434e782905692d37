/* together DIRECTORY TARGET: eight threads, and a child of each of two of them, stage files of
 * their own out at the same time, while signals come each millisecond that interrupt every call
 * that can be interrupted. */
#include <datawarp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8, FILES = 20 };
static const char *directory, *target;
static volatile sig_atomic_t rung;

static void ring(int number) {
  (void)number;
  rung++;
}

static int one(int owner, int number) {
  char from[4096], to[4096];
  int complete, pending, deferred, failed;
  FILE *file;
  snprintf(from, sizeof from, "%s/f.%d.%d", directory, owner, number);
  snprintf(to, sizeof to, "%s/f.%d.%d", target, owner, number);
  file = fopen(from, "w");
  if (file == NULL)
    return 1;
  fprintf(file, "%d of %d\n", number, owner);
  fclose(file);
  if (dw_stage_file_out(from, to, DW_STAGE_IMMEDIATE) != 0)
    return 2;
  if (dw_wait_file_stage(from) != 0)
    return 3;
  if (dw_query_file_stage(from, &complete, &pending, &deferred, &failed) != 0)
    return 4;
  return complete == 1 && pending + deferred + failed == 0 ? 0 : 5;
}

static void *work(void *argument) {
  int owner = (int)(long)argument, wrong = 0, status;
  pid_t child = owner < 2 ? fork() : 0;
  if (owner < 2 && child == 0) {
    int bad = one(owner + 100, 0);
    close(STDERR_FILENO); /* a child may close whatever it likes */
    _exit(bad);
  }
  for (int i = 0; i < FILES && wrong == 0; i++)
    wrong = one(owner, i);
  if (owner < 2) {
    while (waitpid(child, &status, 0) < 0)
      continue;
    if (status != 0)
      wrong = 9;
  }
  return (void *)(long)wrong;
}

int main(int argc, char **argv) {
  const struct itimerval each = {{0, 1000}, {0, 1000}};
  struct sigaction action;
  pthread_t threads[THREADS];
  void *wrong;
  int all = 0;
  if (argc != 3)
    return 2;
  directory = argv[1];
  target = argv[2];
  memset(&action, 0, sizeof action);
  action.sa_handler = ring; /* without SA_RESTART */
  sigaction(SIGALRM, &action, NULL);
  setitimer(ITIMER_REAL, &each, NULL);
  for (long i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, work, (void *)i);
  for (int i = 0; i < THREADS; i++) {
    while (pthread_join(threads[i], &wrong) != 0)
      continue;
    if (wrong != NULL)
      fprintf(stderr, "thread %d: %ld\n", i, (long)wrong);
    all |= wrong != NULL;
  }
  return all || rung == 0;
}
