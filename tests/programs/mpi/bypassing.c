/* Moves data in a way that the hooks see or do not see: bypassing HOW FILE BYTES. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static void expect(int holds, const char *what) {
  if (!holds) {
    perror(what);
    exit(1);
  }
}

static void write_all(int file, const char *bytes, size_t length) {
  for (size_t done = 0; done < length;) {
    ssize_t more = write(file, bytes + done, length - done);
    expect(more > 0, "write");
    done += (size_t)more;
  }
}

static void write_mapped(int file, const char *bytes, size_t length) {
  expect(ftruncate(file, (off_t)length) == 0, "ftruncate");
  char *place = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  expect(place != MAP_FAILED, "mmap");
  memcpy(place, bytes, length);
  munmap(place, length);
}

/* Through a pipe, whose bytes are as many as it holds. */
static void write_spliced(int file, const char *bytes, size_t length) {
  int ends[2];
  expect(pipe(ends) == 0, "pipe");
  size_t piece = (size_t)fcntl(ends[1], F_GETPIPE_SZ);
  for (size_t done = 0; done < length;) {
    size_t wanted = length - done < piece ? length - done : piece;
    write_all(ends[1], bytes + done, wanted);
    for (size_t moved = 0; moved < wanted;) {
      ssize_t more = splice(ends[0], NULL, file, NULL, wanted - moved, 0);
      expect(more > 0, "splice");
      moved += (size_t)more;
    }
    done += wanted;
  }
}

static void read_mapped(int file, size_t length) {
  /* More than there is of the file. */
  const char *place = mmap(NULL, 4 * length, PROT_READ, MAP_PRIVATE, file, 0);
  expect(place != MAP_FAILED, "mmap");
  int sum = 0;
  for (size_t i = 0; i < length; i += 4096)
    sum += place[i];
  expect(sum >= 0, "sum");
}

/* One request to write all of it; the ring is made by a system call that libc does not have. */
static void write_by_ring(int file, const char *bytes, size_t length) {
  struct io_uring_params ring = {0};
  int descriptor = (int)syscall(SYS_io_uring_setup, 1, &ring);
  expect(descriptor >= 0, "io_uring_setup");
  size_t queue_bytes = ring.sq_off.array + ring.sq_entries * sizeof(unsigned);
  char *queue = mmap(NULL, queue_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  struct io_uring_sqe *request =
      mmap(NULL, sizeof *request, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, IORING_OFF_SQES);
  expect(queue != MAP_FAILED && request != MAP_FAILED, "mmap");
  *request = (struct io_uring_sqe){
      .opcode = IORING_OP_WRITE, .fd = file, .addr = (unsigned long)bytes, .len = (unsigned)length};
  ((unsigned *)(void *)(queue + ring.sq_off.array))[0] = 0;
  *(unsigned *)(void *)(queue + ring.sq_off.tail) += 1;
  expect(syscall(SYS_io_uring_enter, descriptor, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1,
         "io_uring_enter");
}

int main(int count, char **words) {
  if (count != 4)
    return 2;
  size_t length = strtoul(words[3], NULL, 10);
  char *bytes = calloc(length, 1);
  int file = open(words[2], O_RDWR | O_CREAT, 0666);
  expect(file >= 0 && bytes != NULL, words[2]);
  if (strcmp(words[1], "written") == 0)
    write_all(file, bytes, length);
  else if (strcmp(words[1], "mapped_to_write") == 0)
    write_mapped(file, bytes, length);
  else if (strcmp(words[1], "mapped_to_read") == 0)
    read_mapped(file, length);
  else if (strcmp(words[1], "ring") == 0)
    write_by_ring(file, bytes, length);
  else if (strcmp(words[1], "spliced") == 0)
    write_spliced(file, bytes, length);
  else if (strcmp(words[1], "piped") == 0)
    write_all(1, bytes, length);
  return close(file);
}
