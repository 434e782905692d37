/* Reads an emulated and a plain file through numbers that libc closes, copies and hands out again.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static char buffer[1000];

static void check(int condition) {
  if (!condition)
    exit(1);
}

static void read_at(int fd) { check(pread(fd, buffer, sizeof buffer, 0) == sizeof buffer); }

/* Opening and closing that no library sees. */
static int open_unseen(const char *path) {
  return (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY);
}

static void close_unseen(int fd) { syscall(SYS_close, fd); }

/* Reads the emulated file 5 times. */
static void unseen(void) {
  /* Foreign, closed; then emulated, opened unseen. */
  int fd = open("fast", O_RDONLY);
  read_at(fd);
  close(fd);
  check(open_unseen("pfs/slow") == fd);
  read_at(fd);
  close_unseen(fd);

  /* Emulated, closed unseen; then foreign, opened unseen. */
  fd = open("pfs/slow", O_RDONLY);
  read_at(fd);
  close_unseen(fd);
  check(open_unseen("fast") == fd);
  read_at(fd);
  close_unseen(fd);

  /* Foreign, closed unseen; then emulated, opened. */
  check(open("fast", O_RDONLY) == fd);
  read_at(fd);
  close_unseen(fd);
  check(open("pfs/slow", O_RDONLY) == fd);
  read_at(fd);

  /* Foreign, closed unseen; then a copy of an emulated one. */
  int plain = open("fast", O_RDONLY);
  read_at(plain);
  close_unseen(plain);
  check(fcntl(fd, F_DUPFD, plain) == plain);
  read_at(plain);
  close(plain);

  /* A foreign stream, closed; then emulated, opened unseen. */
  FILE *stream = fopen("fast", "r");
  plain = fileno(stream);
  read_at(plain);
  fclose(stream);
  check(open_unseen("pfs/slow") == plain);
  read_at(plain);
  close(plain);
  close(fd);
}

/* Reads the emulated file 4 times more. */
int main(void) {
  unseen();
  /* A foreign number is closed by fclose and comes back emulated. */
  FILE *stream = fopen("fast", "r");
  int fd = fileno(stream);
  read_at(fd);
  fclose(stream);
  check(open("pfs/slow", O_RDONLY) == fd);
  read_at(fd);
  close(fd);

  /* An emulated number is closed by fclose and comes back foreign, unseen. */
  fd = open("pfs/slow", O_RDONLY);
  read_at(fd);
  stream = fdopen(fd, "r");
  fclose(stream);
  stream = fopen("fast", "r");
  check(fileno(stream) == fd);
  read_at(fd);
  fclose(stream);

  /* fcntl makes numbers, also onto one that was foreign. */
  int plain = open("fast", O_RDONLY);
  read_at(plain);
  int slow = open("pfs/slow", O_RDONLY);
  close(plain);
  int copy = fcntl(slow, F_DUPFD, plain);
  check(copy == plain);
  read_at(copy);

  /* A pipe's end closed and its number given to an emulated file. */
  int ends[2];
  check(pipe(ends) == 0);
  check(write(ends[1], "x", 1) == 1 && read(ends[0], buffer, 1) == 1);
  close(ends[0]);
  check(dup2(slow, ends[0]) == ends[0]);
  read_at(ends[0]);
  return 0;
}
