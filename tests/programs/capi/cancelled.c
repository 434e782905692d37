/* cancelled FILE TARGET: closes all its files, stages FILE out and cancels the thread that waits
 * for it. The exit status says what is wrong: it has no standard error. */
#include <datawarp.h>
#include <pthread.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FILES = 256 };

static void *wait_for(void *file) {
  int status = dw_wait_file_stage(file);
  pthread_testcancel();
  return status == 0 ? NULL : file;
}

/* The number of the open socket, or -1. */
static int open_socket(void) {
  struct stat status;
  for (int fd = 0; fd < FILES; fd++)
    if (fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode))
      return fd;
  return -1;
}

int main(int argc, char **argv) {
  const struct timespec moment = {0, 10000000};
  pthread_t thread;
  void *result;
  int fd = -1;
  if (argc != 3)
    return 2;
  for (int i = 0; i < FILES; i++)
    close(i);
  if (dw_stage_file_out(argv[1], argv[2], DW_STAGE_IMMEDIATE) != 0)
    return 3;
  if (pthread_create(&thread, NULL, wait_for, argv[1]) != 0)
    return 4;
  /* It has a lower number for a moment. */
  for (int i = 0; i < 100 && fd <= STDERR_FILENO; i++) {
    nanosleep(&moment, NULL);
    fd = open_socket();
  }
  if (fd <= STDERR_FILENO)
    return 5;
  pthread_cancel(thread);
  nanosleep(&moment, NULL);
  if (dw_terminate_file_stage(argv[1]) != 0)
    return 6;
  if (pthread_join(thread, &result) != 0 || result != PTHREAD_CANCELED)
    return 7;
  return 0;
}
