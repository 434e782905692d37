/* Programs that are hard on whoever looks on: harsh CASE, in a directory of its own. What they
 * print and leave there must not depend on that. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCK = 1000, BLOCKS = 1100 /* more than a process must write to be told of */, DONE = 7 };

static char block[BLOCK];
static const char *program;

static void check(int good, const char *what) {
  if (good)
    return;
  int kept = errno, log = open("failed", O_CREAT | O_WRONLY | O_APPEND, 0666);
  dprintf(log, "%s: %s\n", what, strerror(kept));
  _exit(1);
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

static void await(pid_t child) {
  int status;
  check(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == DONE, "child");
}

/* All descriptors closed, and opened again as other files. */
static void closes_all(void) {
  put(create("before"), 1);
  for (int descriptor = 0; descriptor < 1024; descriptor++)
    close(descriptor);
  check(create("zero") == 0 && create("one") == 1 && create("two") == 2, "numbers");
  put(0, BLOCKS);
  check(printf("to standard output\n") > 0 && fflush(stdout) == 0, "printf");
  check(fprintf(stderr, "to standard error\n") > 0, "fprintf");
  check(lseek(0, 0, SEEK_SET) == 0 && fgetc(stdin) == 'x', "fgetc");
}

static void daemonises(void) {
  int ends[2];
  char byte;
  put(create("of-parent"), BLOCKS);
  check(pipe(ends) == 0, "pipe");
  if (fork() == 0) {
    setsid();
    if (fork() > 0)
      _exit(0);
    for (int descriptor = 0; descriptor < 1024; descriptor++)
      if (descriptor != ends[1])
        close(descriptor);
    put(create("of-daemon"), BLOCKS);
    exit(0);
  }
  close(ends[1]);
  check(read(ends[0], &byte, 1) == 0, "the daemon's end");
  check(wait(NULL) > 0, "wait");
}

static void executes_itself(void) {
  put(create("before"), BLOCKS);
  execl(program, program, "written", (char *)NULL);
}

static void written(void) { put(create("written"), BLOCKS); }

static void vforks(void) {
  int descriptor = create("inherited");
  put(descriptor, BLOCKS);
  pid_t child = vfork();
  if (child == 0) {
    ssize_t moved = write(descriptor, block, BLOCK);
    close(descriptor);
    execl(program, program, moved == BLOCK ? "written" : "", (char *)NULL);
    _exit(1);
  }
  await(child);
  put(descriptor, 1);
}

/* Parent and child share the position: neither writes over the other's. */
static void forks(void) {
  int descriptor = create("shared");
  put(descriptor, BLOCKS);
  pid_t child = fork();
  put(descriptor, BLOCKS);
  if (child == 0)
    exit(DONE);
  await(child);
  check(lseek(descriptor, 0, SEEK_CUR) == 3 * BLOCKS * BLOCK, "lseek");
}

static void *open_and_close(void *name) {
  for (int i = 0; i < 20000; i++)
    check(close(create(name)) == 0, "close");
  return NULL;
}

static void *write_on(void *descriptor) {
  put(*(int *)descriptor, 20000);
  return NULL;
}

/* Numbers come and go in two threads, while two others write to one descriptor. */
static void races(void) {
  pthread_t threads[4];
  int shared = create("shared");
  pthread_create(&threads[0], NULL, open_and_close, "one");
  pthread_create(&threads[1], NULL, open_and_close, "two");
  pthread_create(&threads[2], NULL, write_on, &shared);
  pthread_create(&threads[3], NULL, write_on, &shared);
  for (int i = 0; i < 4; i++)
    pthread_join(threads[i], NULL);
}

static long resident_kib(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

/* Nothing may be left of them: 1 MiB is 12 bytes for each. */
static void opens_often(void) {
  long before_kib = 0;
  for (int i = 0; i < 100000; i++) {
    int descriptor = create("often");
    put(descriptor, i % 16 == 0);
    close(dup(descriptor));
    close(descriptor);
    if (i == 10000)
      before_kib = resident_kib();
  }
  check(resident_kib() - before_kib < 1024, "memory");
}

static void reads_proc(void) {
  char line[4096];
  int descriptor = open("/proc/self/stat", O_RDONLY);
  check(read(descriptor, line, sizeof line) > 0 && read(descriptor, line, sizeof line) == 0,
        "read");
  check(lseek(descriptor, 0, SEEK_SET) == 0 && read(descriptor, line, 4) == 4, "read again");
  FILE *maps = fopen("/proc/self/status", "r");
  check(fgets(line, sizeof line, maps) != NULL && strcmp(line, "Name:\tharsh\n") == 0, "fgets");
  put(create("written"), BLOCKS);
}

static void deletes(void) {
  struct stat status;
  int descriptor = create("gone");
  put(descriptor, BLOCKS);
  check(unlink("gone") == 0, "unlink");
  put(descriptor, 1);
  check(fstat(descriptor, &status) == 0 && status.st_nlink == 0, "fstat");
  check(lseek(descriptor, 0, SEEK_SET) == 0 && read(descriptor, block, BLOCK) == BLOCK, "read");
  put(create("gone"), 1); /* another file of that name */
  put(descriptor, 1);
  check(fstat(descriptor, &status) == 0 && status.st_size == (BLOCKS + 1) * BLOCK, "its size");
}

static void renames(void) {
  int descriptor = create("old");
  put(descriptor, BLOCKS);
  check(rename("old", "new") == 0, "rename");
  put(descriptor, 1);
  put(create("old"), 1);
  check(chdir("..") == 0, "chdir"); /* where relative names lead has changed */
  put(descriptor, 1);
}

static sigjmp_buf begin;
static volatile sig_atomic_t jumps;

static void jump(int number) {
  (void)number;
  jumps++;
  siglongjmp(begin, 1);
}

static void *write_too(void *descriptor) {
  while (jumps < 2000)
    check(pwrite(*(int *)descriptor, block, BLOCK, 0) == BLOCK, "pwrite");
  return NULL;
}

/* A handler leaves whatever it has interrupted, a call of the library too. */
static void jumps_out(void) {
  static int descriptor;
  static pthread_t other;
  struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
  static sigset_t alarms;
  descriptor = create("jumped");
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &alarms, NULL); /* in the other thread */
  pthread_create(&other, NULL, write_too, &descriptor);
  pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
  signal(SIGALRM, jump);
  sigsetjmp(begin, 1);
  setitimer(ITIMER_REAL, &often, NULL);
  while (jumps < 2000)
    check(pwrite(descriptor, block, BLOCK, 0) == BLOCK || errno == EINTR, "pwrite");
  setitimer(ITIMER_REAL, &never, NULL);
  signal(SIGALRM, SIG_IGN);
  pthread_join(other, NULL);
  put(descriptor, 1);
  check(close(descriptor) == 0, "close");
}

/* The same at every moment of the first calls of a process, at which the library does what is rare.
 */
static void jumps_out_early(void) {
  enum { CHILDREN = 400, STEP_US = 3, FIRST_BYTES = 300 << 10 };
  char *bytes = calloc(1, FIRST_BYTES);
  check(bytes != NULL, "calloc");
  for (int child = 0; child < CHILDREN; child++) {
    pid_t process = fork();
    if (process == 0) {
      struct itimerval once = {{0, 0}, {0, 1 + child * STEP_US}};
      signal(SIGALRM, jump);
      if (sigsetjmp(begin, 1) == 0) {
        setitimer(ITIMER_REAL, &once, NULL);
        int descriptor = create("early");
        while (jumps == 0)
          check(pwrite(descriptor, bytes, FIRST_BYTES, 0) == FIRST_BYTES, "pwrite");
      }
      _exit(0);
    }
    int status;
    check(waitpid(process, &status, 0) == process, "waitpid");
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child");
  }
  put(create("early"), 1); /* the last child may have left before it wrote */
  free(bytes);
}

static void temporary(void) {
  char name[] = "forebay-XXXXXX", other[] = "forebay-XXXXXX.data";
  int descriptor = mkstemp(name);
  check(descriptor >= 0, "mkstemp");
  put(descriptor, BLOCKS);
  check(unlink(name) == 0, "unlink");
  descriptor = mkostemps(other, 5, O_APPEND);
  check(descriptor >= 0 && lseek(descriptor, 0, SEEK_SET) == 0, "mkostemps");
  put(descriptor, 1);
  check(rename(other, "kept") == 0, "rename");
  FILE *nameless = tmpfile();
  check(fputs("text", nameless) >= 0 && fclose(nameless) == 0, "tmpfile");
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(void);
  } cases[] = {
      {"closes_all", closes_all},
      {"daemonises", daemonises},
      {"executes_itself", executes_itself},
      {"written", written},
      {"vforks", vforks},
      {"forks", forks},
      {"races", races},
      {"opens_often", opens_often},
      {"reads_proc", reads_proc},
      {"deletes", deletes},
      {"renames", renames},
      {"jumps_out", jumps_out},
      {"jumps_out_early", jumps_out_early},
      {"temporary", temporary},
  };
  program = argv[0];
  memset(block, 'x', sizeof block);
  for (size_t i = 0; argc == 2 && i < sizeof cases / sizeof *cases; i++)
    if (strcmp(cases[i].name, argv[1]) == 0) {
      cases[i].run();
      return DONE;
    }
  return 2;
}
