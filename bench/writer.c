// Two processes write one file each, a block at a time: how fast, by the way the file comes about.
// usage: writer DIRECTORY MIB REPEAT BLOCK_BYTES
// One line of JSON: GiB/s of both together; `first` once, the others REPEAT times.

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WRITERS = 2, BLOCK_BYTES_MAX = 1 << 20, PATH_BYTES = 4096 };
static const double bytes_per_gib = 1073741824.0;

enum way { GROWS, SIZED, OVERWRITES };

static const char *directory;
static long blocks, block_bytes;

static void fail(const char *what) {
  fprintf(stderr, "writer: %s in %s: %s\n", what, directory, strerror(errno));
  _exit(1);
}

static void name_of(int writer, char *path) {
  snprintf(path, PATH_BYTES, "%s/writer.%d", directory, writer);
}

static void write_file(int writer, enum way way) {
  static char block[BLOCK_BYTES_MAX];
  char path[PATH_BYTES];
  memset(block, 'a' + writer, sizeof block);
  name_of(writer, path);
  int file = open(path, way == OVERWRITES ? O_WRONLY : O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (file < 0)
    fail("cannot open a file");
  if (way == SIZED && ftruncate(file, blocks * block_bytes) != 0)
    fail("cannot set the size of a file");
  for (long i = 0; i < blocks; i++)
    if (write(file, block, (size_t)block_bytes) != (ssize_t)block_bytes)
      fail("cannot write");
  if (close(file) != 0)
    fail("cannot close");
}

static void remove_files(void) {
  char path[PATH_BYTES];
  for (int writer = 0; writer < WRITERS; writer++) {
    name_of(writer, path);
    if (unlink(path) != 0)
      fail("cannot remove a file");
  }
}

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double gib_per_s(enum way way) {
  double began = now_s();
  for (int writer = 0; writer < WRITERS; writer++) {
    pid_t pid = fork();
    if (pid < 0)
      fail("cannot fork");
    if (pid == 0) {
      write_file(writer, way);
      _exit(0);
    }
  }
  for (int writer = 0; writer < WRITERS; writer++) {
    int status = 0;
    if (wait(&status) < 0 || status != 0)
      _exit(1);
  }
  return (double)(WRITERS * blocks * block_bytes) / bytes_per_gib / (now_s() - began);
}

static void repeat(const char *name, enum way way, long times) {
  printf(", \"%s\": [", name);
  for (long i = 0; i < times; i++) {
    if (way != OVERWRITES)
      remove_files();
    printf("%s%.3f", i == 0 ? "" : ", ", gib_per_s(way));
  }
  printf("]");
}

int main(int argc, char **argv) {
  block_bytes = argc == 5 ? strtol(argv[4], NULL, 10) : 0;
  if (block_bytes < 1 || block_bytes > BLOCK_BYTES_MAX) {
    fprintf(stderr, "usage: writer DIRECTORY MIB REPEAT BLOCK_BYTES\n");
    return 2;
  }
  directory = argv[1];
  blocks = strtol(argv[2], NULL, 10) / WRITERS * (1 << 20) / block_bytes;
  long times = strtol(argv[3], NULL, 10);
  setvbuf(stdout, NULL, _IONBF, 0); // nothing that a fork would print twice
  printf("{\"first\": %.3f", gib_per_s(GROWS));
  repeat("overwritten", OVERWRITES, times);
  repeat("created anew", GROWS, times);
  repeat("size set ahead", SIZED, times);
  printf("}\n");
  remove_files();
  return 0;
}
