/* Calls that succeed leave errno alone; calls that fail set it as they would without the library.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define OK(call)                                                                                   \
  do {                                                                                             \
    errno = 77;                                                                                    \
    if ((call) < 0 || errno != 77) {                                                               \
      printf("%s: errno %d\n", #call, errno);                                                      \
      return 1;                                                                                    \
    }                                                                                              \
  } while (0)
#define FAILS(call, code)                                                                          \
  do {                                                                                             \
    errno = 77;                                                                                    \
    if ((call) >= 0 || errno != (code)) {                                                          \
      printf("%s: errno %d\n", #call, errno);                                                      \
      return 1;                                                                                    \
    }                                                                                              \
  } while (0)

int main(void) {
  struct stat status;
  char buffer[10];
  int fd;
  OK(fd = open("pfs/a", O_CREAT | O_RDWR | O_EXCL, 0600));
  OK(write(fd, "0123456789", 10));
  OK(pread(fd, buffer, 10, 0));
  OK(fsync(fd));
  OK(fstat(fd, &status));
  OK(stat("pfs/a", &status));
  OK(mkdir("pfs/d", 0700));
  OK(close(fd));
  FAILS(open("pfs/a", O_CREAT | O_RDWR | O_EXCL, 0600), EEXIST);
  FAILS(open("pfs/missing", O_RDONLY), ENOENT);
  FAILS(stat("pfs/missing", &status), ENOENT);
  FAILS(stat("", &status), ENOENT);
  FAILS(read(fd, buffer, 10), EBADF);
  FAILS(write(-1, buffer, 10), EBADF);
  FAILS(mkdir("pfs/d", 0700), EEXIST);
  OK(fd = open("pfs/a", O_RDONLY));
  FAILS(write(fd, buffer, 10), EBADF);
  FAILS(pread(fd, buffer, 10, -1), EINVAL);
  FAILS(ftruncate(fd, 1), EINVAL);
  printf("ok\n");
  return 0;
}
