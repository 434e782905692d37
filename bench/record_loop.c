/* record_loop PATH ROUNDS: nanoseconds of one round of open, write, fstat, close and stat, and of
 * one pwrite of 8 bytes. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 512, SMALL = 8 };

static double nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static void check(int good) {
  if (!good) {
    perror("record_loop");
    exit(1);
  }
}

int main(int argc, char **argv) {
  char block[BLOCK] = {0};
  struct stat status;
  check(argc == 3);
  int rounds = atoi(argv[2]);
  double begin = nanoseconds();
  for (int i = 0; i < rounds; i++) {
    int descriptor = open(argv[1], O_CREAT | O_RDWR, 0666);
    check(write(descriptor, block, BLOCK) == BLOCK && fstat(descriptor, &status) == 0);
    check(close(descriptor) == 0 && stat(argv[1], &status) == 0);
  }
  double looped = nanoseconds();
  int descriptor = open(argv[1], O_RDWR);
  double opened = nanoseconds();
  for (int i = 0; i < rounds; i++)
    check(pwrite(descriptor, block, SMALL, 0) == SMALL);
  printf("%.0f %.0f\n", (looped - begin) / rounds, (nanoseconds() - opened) / rounds);
  return 0;
}
