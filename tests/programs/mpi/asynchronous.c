/* Makes what its I/O would go through, by the library that it is linked with: liburing, or libaio
 * with -DKERNEL_AIO. Then writes 1 MiB by write(2). Without the headers of these libraries. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int io_setup(int events, void **context);
int io_uring_queue_init(unsigned entries, void *ring, unsigned flags);

enum { MIB = 1 << 20 };

int main(void) {
  static char ring[4096]; /* larger than struct io_uring */
#ifdef KERNEL_AIO
  int code = io_setup(8, (void **)(void *)ring);
#else
  int code = io_uring_queue_init(8, ring, 0);
#endif
  if (code != 0) {
    fprintf(stderr, "asynchronous: %d\n", code);
    return 1;
  }
  int file = open("a", O_WRONLY | O_CREAT, 0666);
  char *bytes = calloc(MIB, 1);
  return file < 0 || bytes == NULL || write(file, bytes, MIB) != MIB || close(file) != 0;
}
