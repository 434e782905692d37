/* What programs do with files without MPI-IO, one case at a time: direct CASE PATH. With -DWITH_MPI
 * each rank has a file of its own, PATH.RANK, and MPI is initialised around it. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef WITH_MPI
#include <mpi.h>
#endif

enum { BLOCK = 1000, WRITES = 2000 };

static char block[BLOCK];

static void check(int good, const char *what) {
  if (!good) {
    printf("failed: %s: %s\n", what, strerror(errno));
    exit(1);
  }
}

static int create(const char *path) {
  int descriptor = open(path, O_CREAT | O_TRUNC | O_RDWR, 0666);
  check(descriptor >= 0, "open");
  return descriptor;
}

static void put(int descriptor, int times) {
  for (int i = 0; i < times; i++)
    check(write(descriptor, block, BLOCK) == BLOCK, "write");
}

static void data_calls(const char *path) {
  struct iovec two[2] = {{block, 250}, {block, 250}};
  int descriptor = create(path);
  check(write(descriptor, block, 1000) == 1000, "write");        /* 0 to 1000 */
  check(pwrite(descriptor, block, 500, 2000) == 500, "pwrite");  /* a gap of 1000 */
  check(writev(descriptor, two, 2) == 500, "writev");            /* 1000: a step back */
  check(pwritev(descriptor, two, 2, 1500) == 500, "pwritev");    /* 1500: consecutive */
  check(pwritev2(descriptor, two, 2, -1, 0) == 500, "pwritev2"); /* 1500 once more */
  check(lseek(descriptor, 0, SEEK_SET) == 0, "lseek");
  check(read(descriptor, block, 100) == 100, "read");
  check(pread(descriptor, block, 100, 100) == 100, "pread"); /* consecutive */
  check(readv(descriptor, two, 2) == 500, "readv");          /* 100: a step back */
  check(preadv(descriptor, two, 2, 2000) == 500, "preadv");  /* a gap of 1400 */
  check(read(-1, block, 1) == -1 && errno == EBADF, "read from nowhere");
  check(close(descriptor) == 0, "close");
}

static void other_calls(const char *path) {
  struct stat status;
  struct statx more;
  int descriptor = creat(path, 0666);
  check(fstat(descriptor, &status) == 0 && stat(path, &status) == 0, "stat");
  check(statx(AT_FDCWD, path, 0, STATX_ALL, &more) == 0, "statx");
  check(lstat(path, &status) == 0 && fstatat(AT_FDCWD, path, &status, 0) == 0, "lstat");
  check(fsync(descriptor) == 0 && fdatasync(descriptor) == 0, "fsync");
  check(ftruncate(descriptor, 4096) == 0 && truncate(path, 8192) == 0, "ftruncate");
  check(posix_fallocate(descriptor, 0, 10000) == 0, "posix_fallocate");
  check(lseek(descriptor, 5, SEEK_SET) == 5 && lseek(descriptor, 0, SEEK_END) == 10000, "lseek");
  check(lockf(descriptor, F_LOCK, 0) == 0, "lockf");
  check(close(descriptor) == 0, "close");
  descriptor = openat(AT_FDCWD, path, O_RDWR);
  void *at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, descriptor, 0);
  check(at != MAP_FAILED && munmap(at, 4096) == 0, "mmap");
  check(close(descriptor) == 0, "close");
  check(open("/nowhere/at/all", O_RDONLY) == -1 && errno == ENOENT, "open of nothing");
}

static void names(const char *path) {
  int descriptor = create(path), copy = dup(descriptor), other = create("/dev/null");
  int high = fcntl(descriptor, F_DUPFD, 100);
  put(copy, 1);
  put(high, 1);
  check(dup2(other, copy) == copy, "dup2"); /* copy is closed by that */
  put(copy, 1);                             /* to /dev/null */
  check(dup3(descriptor, other, 0) == other, "dup3");
  put(other, 1);
  check(close(descriptor) == 0, "close");
  put(other, 1);
  check(close(copy) == 0, "close"); /* other and high are left */
  check(close_range(100, 200, 0) == 0, "close_range");
  check(write(high, block, 1) == -1 && errno == EBADF, "write to what is closed");
}

static void all_closed(const char *path) {
  create(path);
  for (int descriptor = 3; descriptor < 1000; descriptor++)
    close(descriptor);
}

/* By the position of the descriptor alone, however it was moved. */
static void positions(const char *path) {
  struct iovec two[2] = {{block, 250}, {block, 250}};
  int descriptor = create(path), copy = dup(descriptor);
  put(descriptor, 1);                                     /* 0 to 1000 */
  put(copy, 1);                                           /* goes on at 1000 */
  check(pwrite(copy, block, 100, 5000) == 100, "pwrite"); /* does not move it: a gap of 3000 */
  check(writev(descriptor, two, 2) == 500, "writev");     /* 2000: a step back */
  check(lseek(copy, 500, SEEK_CUR) == 3000, "lseek");     /* from 2500 */
  check(close(copy) == 0, "close");
  put(descriptor, 1); /* 3000: a gap of 500 */
  check(lseek(descriptor, -100, SEEK_END) == 5000, "lseek");
  check(lseek(descriptor, -1, SEEK_SET) == -1, "lseek to nowhere");
  check(read(descriptor, block, BLOCK) == 100, "read"); /* 5000 to the end */
  check(read(descriptor, block, BLOCK) == 0, "read");   /* consecutive, of nothing */
  put(descriptor, 1);                                   /* 5100: a gap of 1100 */
  check(fcntl(descriptor, F_SETFL, O_APPEND) == 0, "fcntl");
  check(lseek(descriptor, 0, SEEK_SET) == 0, "lseek");
  put(descriptor, 2);                                        /* 6100, 7100 */
  check(dprintf(descriptor, "%0100d", 1) == 100, "dprintf"); /* 8100 */
  close(descriptor);
  descriptor = open(path, O_WRONLY | O_APPEND);
  int other = open(path, O_WRONLY | O_APPEND);
  put(descriptor, 1); /* 8200 */
  put(other, 1);      /* 9200 */
  put(descriptor, 1); /* 10200 */
  check(lseek(descriptor, 0, SEEK_CUR) == 11200, "lseek");
  close(descriptor);
  close(other);
}

static void copied(const char *path) {
  char name[4096];
  off_t place = 500;
  snprintf(name, sizeof name, "%s.copy", path);
  int source = create(path), target = create(name);
  put(source, 2);
  check(sendfile(target, source, &place, 1000) == 1000 && place == 1500, "sendfile");
  off64_t from = 0;
  check(copy_file_range(source, &from, target, NULL, 500, 0) == 500, "copy_file_range");
  close(source);
  close(target);
}

static void failing(const char *path) {
  int descriptor = create(path);
  check(write(descriptor, block, 10) == 10, "write");
  close(descriptor);
  descriptor = open(path, O_RDONLY);
  check(write(descriptor, block, 10) == -1 && errno == EBADF, "write to what is read only");
  close(descriptor);
  check(open(path, O_CREAT | O_EXCL, 0666) == -1 && errno == EEXIST, "open of what is there");
  /* Pointers that only the kernel may look at. */
  const char *volatile nowhere = (const char *)1;
  struct stat status;
  check(open(nowhere, O_RDONLY) == -1 && errno == EFAULT, "open of nowhere");
  check(stat(nowhere, &status) == -1 && errno == EFAULT, "stat of nowhere");
  check(fopen(nowhere, "r") == NULL && errno == EFAULT, "fopen of nowhere");
  descriptor = open(path, O_RDONLY);
  check(sendfile(1, descriptor, (off_t *)nowhere, 10) == -1 && errno == EFAULT, "sendfile");
  close(descriptor);
}

static void *write_many(void *path) {
  int descriptor = open(path, O_CREAT | O_RDWR, 0666);
  put(descriptor, WRITES);
  close(descriptor);
  return NULL;
}

static void threads(const char *path) {
  pthread_t made[4];
  for (int i = 0; i < 4; i++)
    pthread_create(&made[i], NULL, write_many, (void *)path);
  for (int i = 0; i < 4; i++)
    pthread_join(made[i], NULL);
}

static void forked(const char *path) {
  int descriptor = create(path), status;
  put(descriptor, 1);
  pid_t child = fork();
  if (child == 0) { /* what it does is not its parent's */
    put(descriptor, 5);
    put(create(path), 5);
    exit(0);
  }
  check(waitpid(child, &status, 0) == child && status == 0, "child");
  child = vfork();
  if (child == 0) { /* in the memory of its parent */
    close(descriptor);
    dup2(open("/dev/null", O_RDWR), 50);
    execl("/bin/true", "true", (char *)NULL);
    _exit(1);
  }
  check(waitpid(child, &status, 0) == child && status == 0, "child of vfork");
  put(descriptor, 1);
  close(descriptor);
}

/* Children that end in each way; what each does is its own, and all of it counts once. */
static void children(const char *path) {
  enum { KINDS = 3 };
  char name[4096];
  int descriptor = create(path), status;
  put(descriptor, WRITES);
  for (int kind = 0; kind < KINDS; kind++) {
    if (fork() > 0)
      continue;
    snprintf(name, sizeof name, "%s.%d", path, kind);
    put(descriptor, WRITES);
    put(create(name), WRITES);
    if (kind == 0)
      _exit(0);
    if (kind == 1)
      raise(SIGKILL);
    exit(0);
  }
  while (wait(&status) > 0)
    ;
  put(descriptor, WRITES);
}

/* From a thread, while others count. */
static void *fork_and_write(void *path) {
  char name[4096];
  write_many(path);
  if (fork() == 0) {
    snprintf(name, sizeof name, "%s.%d", (const char *)path, (int)getpid());
    write_many(name);
    _exit(0);
  }
  return write_many(path);
}

static void forking_threads(const char *path) {
  pthread_t made[4];
  for (int i = 0; i < 4; i++)
    pthread_create(&made[i], NULL, fork_and_write, (void *)path);
  for (int i = 0; i < 4; i++)
    pthread_join(made[i], NULL);
  while (wait(NULL) > 0)
    ;
}

/* Names that are never opened, and one directory that is read. */
static void metadata(const char *path) {
  enum { TIMES = 300 };
  char name[4096], other[4096];
  struct stat status;
  check(mkdir(path, 0777) == 0 && chdir(path) == 0, "mkdir");
  for (int i = 0; i < TIMES; i++) {
    snprintf(name, sizeof name, "%s/d%d", path, i);
    snprintf(other, sizeof other, "e%d", i);
    check(mkdir(name, 0777) == 0 && stat(name, &status) == 0 && access(name, R_OK) == 0, "mkdir");
    check(rename(name, other) == 0 && chmod(other, 0700) == 0 && lstat(name, &status) == -1,
          "rename");
    check(symlink("nowhere", name) == 0 && unlink(name) == 0, "symlink");
    check(access("missing", F_OK) == -1 && errno == ENOENT, "access");
  }
  int entries = 0;
  DIR *directory = opendir(".");
  while (readdir(directory) != NULL)
    entries++;
  check(closedir(directory) == 0 && entries == TIMES + 2, "readdir");
  for (int i = 0; i < TIMES; i++) {
    snprintf(other, sizeof other, "e%d", i);
    check(unlinkat(AT_FDCWD, other, AT_REMOVEDIR) == 0, "rmdir");
  }
  check(chdir("/") == 0 && rmdir(path) == 0, "rmdir");
}

static void create_many(const char *path) {
  enum { TIMES = 3000 };
  char name[4096];
  struct stat status;
  check(mkdir(path, 0777) == 0 && chdir(path) == 0, "mkdir");
  for (int i = 0; i < TIMES; i++) {
    snprintf(name, sizeof name, "f%d", i);
    check(close(create(name)) == 0, "close");
  }
  for (int i = 0; i < TIMES; i++) {
    snprintf(name, sizeof name, "f%d", i);
    check(stat(name, &status) == 0 && unlink(name) == 0, "unlink");
  }
}

/* As numpy saves an array: its head by system calls, the data through a stream on a duplicate. */
static void mixed(const char *path) {
  int descriptor = create(path);
  check(write(descriptor, block, 128) == 128, "write");
  FILE *stream = fdopen(dup(descriptor), "w");
  check(fseek(stream, 128, SEEK_SET) == 0, "fseek");
  for (int i = 0; i < WRITES; i++)
    check(fwrite(block, BLOCK, 1, stream) == 1, "fwrite");
  check(fclose(stream) == 0 && close(descriptor) == 0, "fclose");
}

static void reopened(const char *path) {
  enum { TIMES = 500 };
  struct stat status;
  for (int i = 0; i < TIMES; i++) {
    int descriptor = open(path, O_CREAT | O_RDWR, 0666);
    put(descriptor, 1);
    check(fstat(descriptor, &status) == 0 && close(descriptor) == 0, "fstat");
    check(stat(path, &status) == 0, "stat");
  }
}

static const char *interrupted;

static void open_and_write(int number) {
  (void)number;
  int kept = errno, descriptor = open(interrupted, O_CREAT | O_WRONLY, 0666);
  if (descriptor >= 0 && write(descriptor, block, 1) == 1)
    close(descriptor);
  errno = kept;
}

static void signals(const char *path) {
  enum { ROUNDS = 20000 };
  static char other[4096];
  snprintf(other, sizeof other, "%s.handler", path);
  interrupted = other;
  signal(SIGPROF, open_and_write);
  timer_t timer;
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF};
  struct itimerspec often = {{0, 100000}, {0, 100000}};
  timer_create(CLOCK_MONOTONIC, &event, &timer);
  timer_settime(timer, 0, &often, NULL);
  for (int i = 0; i < ROUNDS; i++) {
    int descriptor = open(path, O_CREAT | O_WRONLY, 0666);
    check(descriptor >= 0, "open");
    void *memory = malloc((size_t)i + 1);
    while (write(descriptor, block, BLOCK) < 0)
      check(errno == EINTR, "write");
    free(memory);
    close(descriptor);
  }
  timer_delete(timer);
}

static void leave(int number) {
  (void)number;
  exit(0);
}

/* Interrupted in malloc, most of the time. */
static void exit_in_handler(const char *path) {
  put(create(path), WRITES);
  signal(SIGALRM, leave);
  ualarm(20000, 0);
  for (;;)
    free(malloc(2000));
}

static void few(const char *path) { put(create(path), 2); }

static void many_files(const char *path) {
  char name[4096];
  for (int i = 0; i < 1100; i++) {
    snprintf(name, sizeof name, "%s.%d", path, i);
    int descriptor = create(name);
    put(descriptor, 1);
    close(descriptor);
    unlink(name);
  }
}

static void killed(const char *path) {
  put(create(path), WRITES);
  raise(SIGKILL);
}

static void left(const char *path) {
  put(create(path), WRITES);
  _exit(0);
}

static void large(const char *path) {
  put(create(path), WRITES);
  check(chdir("/") == 0, "chdir");
}

static void blocks(const char *path) {
  FILE *stream = fopen(path, "w+");
  check(fwrite(block, 100, 5, stream) == 5, "fwrite"); /* 500 */
  check(fprintf(stream, "%s %d\n", "line", 12) == 8, "fprintf");
  check(fputs("text\n", stream) >= 0 && fputc('x', stream) == 'x', "fputs");
  check(fflush(stream) == 0 && fseek(stream, 500, SEEK_SET) == 0, "fseek");
  char line[100], word[10];
  int number;
  check(fscanf(stream, "%9s %d", word, &number) == 2 && number == 12, "fscanf"); /* 7 */
  check(fgetc(stream) == '\n' && fgets(line, sizeof line, stream) != NULL, "fgets");
  check(strcmp(line, "text\n") == 0 && getc(stream) == 'x', "getc");
  rewind(stream);
  check(fread(line, 10, 10, stream) == 10, "fread"); /* a step back */
  check(fclose(stream) == 0, "fclose");
}

static void appended(const char *path) {
  FILE *stream = fopen(path, "w");
  check(fwrite(block, 1, 700, stream) == 700 && fclose(stream) == 0, "fwrite");
  stream = fopen(path, "a");
  check(fwrite(block, 1, 300, stream) == 300, "fwrite");
  check(fwrite(block, 1, 300, stream) == 300 && fclose(stream) == 0, "fwrite");
}

/* One stream of a descriptor that was opened without, one turned to another file, one in memory. */
static void turned(const char *path) {
  char name[4096], text[10];
  snprintf(name, sizeof name, "%s.other", path);
  FILE *stream = fdopen(create(path), "w");
  check(fwrite(block, 1, 100, stream) == 100, "fwrite");
  stream = freopen(name, "w", stream);
  check(stream != NULL && fwrite(block, 1, 200, stream) == 200 && fclose(stream) == 0, "freopen");
  stream = fmemopen(text, sizeof text, "w");
  check(fputc('x', stream) == 'x' && fclose(stream) == 0, "fmemopen");
}

/* Lines longer than libc's buffer, with zeros, without an end; characters pushed back. */
static void lines(const char *path) {
  enum { LONG = 10000 };
  static char line[2 * LONG];
  char *grown = NULL, word[10];
  size_t room = 0;
  FILE *stream = fopen(path, "w");
  memset(line, 'x', LONG);
  check(fprintf(stream, "%s\n", line) == LONG + 1, "fprintf"); /* 10001 */
  check(fwrite("a\0b\n", 1, 4, stream) == 4, "fwrite");        /* 10005 */
  for (int i = 0; i < 2000; i++)
    check(fprintf(stream, "%6d\n", i) == 7, "fprintf");                 /* 24005 */
  check(fputs("the end", stream) >= 0 && fclose(stream) == 0, "fputs"); /* 24012 */
  stream = fopen(path, "r");
  check(fgets(line, LONG / 2 + 1, stream) != NULL, "fgets"); /* 5000 */
  check(fgets(line, sizeof line, stream) != NULL, "fgets");  /* 5001 */
  check(fgets(line, sizeof line, stream) != NULL, "fgets");  /* 4 */
  for (int i = 0; i < 1000; i++) {
    check(fgets(line, sizeof line, stream) != NULL, "fgets"); /* 7, 7000 together */
    check(atoi(line) == i, "what fgets read");
  }
  check(getline(&grown, &room, stream) == 7, "getline");
  check(ungetc(fgetc(stream), stream) == ' ', "ungetc"); /* 1, and that once more */
  for (int i = 1001, found; i < 2000; i++)
    check(fscanf(stream, "%d", &found) == 1 && found == i, "fscanf");                    /* 7 */
  check(fscanf(stream, "%s", word) == 1 && strcmp(word, "the") == 0, "fscanf");          /* 4 */
  check(fgets(line, sizeof line, stream) != NULL && strcmp(line, " end") == 0, "fgets"); /* 4 */
  check(fgets(line, sizeof line, stream) == NULL, "fgets");
  free(grown);
  fclose(stream);
}

/* Many single characters, with other calls in between. */
static void characters(const char *path) {
  FILE *stream = fopen(path, "w+");
  for (int i = 0; i < 10000; i++)
    check(fputc('x', stream) == 'x', "fputc"); /* 10000 */
  check(fwrite(block, 1, 100, stream) == 100, "fwrite");
  for (int i = 0; i < 50; i++)
    check(putc('y', stream) == 'y', "putc");           /* 10150 */
  check(fseek(stream, 20000, SEEK_SET) == 0, "fseek"); /* a gap of 9850 */
  for (int i = 0; i < 10; i++)
    check(fputc('z', stream) == 'z', "fputc");
  rewind(stream);
  for (int i = 0; i < 7000; i++)
    check(fgetc(stream) == 'x', "fgetc");
  check(fclose(stream) == 0, "fclose");
}

/* As C++ uses the streams that it opens. */
static void lent(const char *path) {
  FILE *stream = fopen(path, "w");
  check(write(fileno(stream), block, 100) == 100, "write");
  check(lseek(fileno(stream), 10, SEEK_SET) == 10, "lseek");
  check(fclose(stream) == 0, "fclose");
}

static void full(const char *path) {
  FILE *stream = fopen("/dev/full", "w");
  check(fwrite(block, 1, 100, stream) == 100, "fwrite");
  check(fclose(stream) == EOF && errno == ENOSPC, "fclose");
  check(fopen(path, "r") == NULL && errno == ENOENT, "fopen of nothing");
}

/* Bytes over 30 bins of 100 ms. */
static void slow(const char *path) {
  int descriptor = create(path);
  put(descriptor, 1);
  usleep(350000);
  put(descriptor, 1);
  close(descriptor);
}

/* Nanoseconds of one call. */
static double nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static void cost(const char *path) {
  enum { TIMES = 100000 };
  int descriptor = create(path);
  FILE *stream = fdopen(dup(descriptor), "w");
  double start = nanoseconds();
  for (int i = 0; i < TIMES; i++)
    if (pwrite(descriptor, block, 8, 0) != 8)
      return;
  double pwritten = nanoseconds();
  for (int i = 0; i < TIMES; i++)
    if (write(descriptor, block, 8) != 8)
      return;
  double written = nanoseconds();
  for (int i = 0; i < TIMES; i++)
    fwrite(block, 8, 1, stream);
  double streamed = nanoseconds();
  for (int i = 0; i < TIMES; i++)
    fputc('x', stream);
  double put_out = nanoseconds();
  printf("%.0f %.0f %.0f %.0f\n", (pwritten - start) / TIMES, (written - pwritten) / TIMES,
         (streamed - written) / TIMES, (put_out - streamed) / TIMES);
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(const char *path);
  } cases[] = {
      {"data_calls", data_calls},
      {"other_calls", other_calls},
      {"names", names},
      {"all_closed", all_closed},
      {"positions", positions},
      {"copied", copied},
      {"failing", failing},
      {"threads", threads},
      {"forked", forked},
      {"children", children},
      {"forking_threads", forking_threads},
      {"mixed", mixed},
      {"reopened", reopened},
      {"metadata", metadata},
      {"create_many", create_many},
      {"signals", signals},
      {"exit_in_handler", exit_in_handler},
      {"few", few},
      {"many_files", many_files},
      {"killed", killed},
      {"left", left},
      {"large", large},
      {"blocks", blocks},
      {"appended", appended},
      {"turned", turned},
      {"lines", lines},
      {"characters", characters},
      {"lent", lent},
      {"full", full},
      {"slow", slow},
      {"cost", cost},
  };
  if (argc != 3)
    return 2;
  const char *path = argv[2];
#ifdef WITH_MPI
  char own[4096];
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  snprintf(own, sizeof own, "%s.%d", path, rank);
  path = own;
#endif
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (strcmp(cases[i].name, argv[1]) == 0)
      cases[i].run(path);
#ifdef WITH_MPI
  MPI_Finalize();
#endif
  return 0;
}
