/* Small MPI-IO programs in one: observed CASE PATH. Every rank prints what it found, "ok" or "not
 * ok", so that a test sees whether the library in front of the MPI changed anything. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <locale.h>
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCK = 1000, BLOCKS = 4, THREADS = 4, FILES = 1100, DESCRIPTORS = 256 };

static int rank, ranks;
static char block[BLOCK];

static void check(int good) {
  printf("rank %d %s\n", rank, good ? "ok" : "not ok");
  fflush(stdout);
}

static MPI_File open_file(MPI_Comm comm, const char *path, int mode) {
  MPI_File file = MPI_FILE_NULL;
  if (MPI_File_open(comm, path, mode, MPI_INFO_NULL, &file) != MPI_SUCCESS)
    MPI_Abort(MPI_COMM_WORLD, 3);
  return file;
}

static MPI_File create(const char *path) {
  return open_file(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
}

/* Block number i of this rank, ranks in turn. */
static MPI_Offset place(int i) { return (MPI_Offset)(i * ranks + rank) * BLOCK; }

static void independent(const char *path) {
  MPI_Status status;
  int count, code = MPI_SUCCESS;
  MPI_File file = create(path);
  for (int i = 0; i < BLOCKS; i++)
    code |= MPI_File_write_at(file, place(i), block, BLOCK, MPI_BYTE, &status);
  MPI_Get_count(&status, MPI_BYTE, &count);
  code |= MPI_File_sync(file);
  MPI_Barrier(MPI_COMM_WORLD);
  code |= MPI_File_read_at(file, 0, block, BLOCK, MPI_BYTE, &status);
  code |= MPI_File_close(&file);
  check(code == MPI_SUCCESS && count == BLOCK && file == MPI_FILE_NULL && block[5] == 'x');
}

static void nonblocking(const char *path) {
  MPI_Request requests[BLOCKS];
  MPI_Status statuses[BLOCKS];
  MPI_File file = create(path);
  for (int i = 0; i < BLOCKS; i++)
    MPI_File_iwrite_at(file, place(i), block, BLOCK, MPI_BYTE, &requests[i]);
  int code = MPI_Waitall(BLOCKS, requests, statuses);
  code |= MPI_File_iwrite_at_all(file, place(BLOCKS), block, BLOCK, MPI_BYTE, requests);
  code |= MPI_Wait(requests, MPI_STATUS_IGNORE);
  code |= MPI_File_close(&file);
  check(code == MPI_SUCCESS);
}

static void split(const char *path) {
  MPI_Status status;
  MPI_File file = create(path);
  MPI_File_write_at_all_begin(file, place(0), block, BLOCK, MPI_BYTE);
  int code = MPI_File_write_at_all_end(file, block, &status);
  MPI_File_read_at_all_begin(file, place(0), block, BLOCK, MPI_BYTE);
  code |= MPI_File_read_at_all_end(file, block, &status);
  code |= MPI_File_close(&file);
  check(code == MPI_SUCCESS);
}

/* Every rank a file of its own; and one that all open under one name. */
static void own(const char *path) {
  char name[4096];
  snprintf(name, sizeof name, "%s.%d", path, rank);
  MPI_File file = open_file(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_WRONLY);
  int code = MPI_File_write(file, block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
  code |= MPI_File_close(&file);
  check(code == MPI_SUCCESS);
}

/* Every second 10 bytes of a file that exists: data sieving has to read the others. */
static void sieve_times(const char *path, int times) {
  MPI_Datatype type;
  MPI_File file = open_file(MPI_COMM_SELF, path, MPI_MODE_RDWR);
  MPI_Type_vector(50, 10, 20, MPI_BYTE, &type);
  MPI_Type_commit(&type);
  int code = MPI_File_set_view(file, 0, MPI_BYTE, type, "native", MPI_INFO_NULL);
  for (int i = 0; i < times; i++)
    code |= MPI_File_write_at(file, 0, block, 500, MPI_BYTE, MPI_STATUS_IGNORE);
  code |= MPI_File_close(&file);
  MPI_Type_free(&type);
  check(code == MPI_SUCCESS);
}

static void sieve(const char *path) { sieve_times(path, 1); }

static void sieve_twice(const char *path) { sieve_times(path, 2); }

static void missing(const char *path) {
  MPI_File file = MPI_FILE_NULL;
  int class, code = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
  MPI_Error_class(code, &class);
  check(class == MPI_ERR_NO_SUCH_FILE);
}

static void info(const char *path) {
  MPI_Info given;
  MPI_File file;
  MPI_Info_create(&given);
  MPI_Info_set(given, "cb_buffer_size", "65536");
  MPI_Info_set(given, "cb_nodes", "1");
  int code = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, given, &file);
  char value[32] = "";
  int is_there;
  MPI_Info_get(given, "cb_buffer_size", 31, value, &is_there);
  MPI_Info_free(&given);
  code |= MPI_File_write_at_all(file, place(0), block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
  code |= MPI_File_close(&file);
  check(code == MPI_SUCCESS && strcmp(value, "65536") == 0);
}

static int say_copied(MPI_Comm comm, int key, void *extra, void *value, void *copy, int *is_kept) {
  (void)comm, (void)key, (void)extra, (void)value, (void)copy;
  printf("rank %d not ok: its attribute was copied\n", rank);
  *is_kept = 0;
  return MPI_SUCCESS;
}

/* An attribute whose copying would be seen. */
static void attributes(const char *path) {
  int key;
  MPI_Comm_create_keyval(say_copied, MPI_COMM_NULL_DELETE_FN, &key, NULL);
  MPI_Comm_set_attr(MPI_COMM_WORLD, key, &rank);
  unlink(path);
  check(1);
}

static void unclosed(const char *path) {
  MPI_File file = create(path);
  check(MPI_File_write_at(file, place(0), block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE) ==
        MPI_SUCCESS);
}

/* Children that close all descriptors, one of them in its parent's memory. */
static void forked(const char *path) {
  int status = 0, code = MPI_SUCCESS;
  MPI_File file = create(path);
  for (int i = 0; i < BLOCKS; i++) {
    pid_t child = i % 2 == 0 ? fork() : vfork();
    if (child == 0) {
      for (int descriptor = 3; descriptor < DESCRIPTORS; descriptor++)
        close(descriptor);
      _exit(0);
    }
    waitpid(child, &status, 0);
    code |= status;
    code |= MPI_File_write_at(file, place(i), block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
  }
  code |= system("exit 0");
  code |= MPI_File_close(&file);
  check(code == MPI_SUCCESS);
}

/* A child that opens files under its parent's descriptors, in its parent's memory. */
static void forked_opens(const char *path) {
  int status = 0;
  MPI_File file = create(path);
  if (vfork() == 0) {
    for (int descriptor = 3; descriptor < DESCRIPTORS; descriptor++)
      close(descriptor);
    for (int descriptor = 3; descriptor < DESCRIPTORS; descriptor++)
      if (open("/dev/null", O_RDONLY | O_CLOEXEC) < 0)
        _exit(1);
    _exit(0);
  }
  wait(&status);
  int code = MPI_File_write_at(file, place(0), block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
  code |= MPI_File_close(&file);
  check(code == MPI_SUCCESS && status == 0);
}

static void line_ends(const char *path) {
  MPI_Info given;
  MPI_File file;
  MPI_Info_create(&given);
  MPI_Info_set(given, "note", "first\nsecond");
  int code = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, given, &file);
  MPI_Info_free(&given);
  code |= MPI_File_close(&file);
  check(code == MPI_SUCCESS);
}

static jmp_buf out;

static void jump(MPI_File *file, int *code, ...) {
  (void)file, (void)code;
  longjmp(out, 1);
}

/* An open that fails and that its error handler leaves; then the like without a fault. */
static void jumping(const char *path) {
  char name[4096];
  MPI_Errhandler handler;
  MPI_File_create_errhandler(jump, &handler);
  MPI_File_set_errhandler(MPI_FILE_NULL, handler);
  snprintf(name, sizeof name, "%s.missing", path);
  if (setjmp(out) == 0)
    open_file(MPI_COMM_SELF, name, MPI_MODE_RDONLY);
  MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
  MPI_File file = open_file(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_WRONLY);
  int code = MPI_File_write_at(file, 0, block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
  code |= MPI_File_close(&file);
  check(code == MPI_SUCCESS);
}

static void open_something(int number) {
  (void)number;
  close(open("/dev/null", O_WRONLY));
}

/* Many signals, some of which arrive while the library counts. */
static void signals(const char *path) {
  struct sigaction action = {.sa_handler = open_something, .sa_flags = SA_RESTART};
  struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
  MPI_File file = create(path);
  alarm(60);
  sigaction(SIGPROF, &action, NULL);
  setitimer(ITIMER_PROF, &often, NULL);
  for (int i = 0; i < 200000; i++)
    MPI_File_write_at(file, 0, block, 8, MPI_BYTE, MPI_STATUS_IGNORE);
  setitimer(ITIMER_PROF, &never, NULL);
  check(MPI_File_close(&file) == MPI_SUCCESS);
}

static void decimal_comma(const char *path) {
  if (setlocale(LC_ALL, "") == NULL || localeconv()->decimal_point[0] != ',')
    printf("no such locale\n");
  independent(path);
}

/* What the MPI says about no handle at all is its own affair; here it must get there. */
static void no_handle(const char *path) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  unlink(path);
  check(MPI_File_close(NULL) != MPI_SUCCESS);
}

static void *write_many(void *file) {
  for (int i = 0; i < 100; i++)
    MPI_File_write_at(*(MPI_File *)file, place(i), block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
  return NULL;
}

static volatile int enough;

static void *write_until_enough(void *file) {
  while (!enough)
    write_many(file);
  return NULL;
}

/* Children made while other threads write, which use the file's descriptor and must not wait for a
 * thread that they lack. */
static void forked_threads(const char *path) {
  pthread_t thread[THREADS];
  int status = 0, code = 0;
  MPI_File file = create(path);
  for (int i = 0; i < THREADS; i++)
    pthread_create(&thread[i], NULL, write_until_enough, &file);
  for (int i = 0; i < 200; i++) {
    pid_t child = fork();
    if (child == 0) {
      alarm(10);
      for (int descriptor = 3; descriptor < DESCRIPTORS; descriptor++)
        if (pread(descriptor, block, 0, 0) != 0)
          continue;
      _exit(0);
    }
    waitpid(child, &status, 0);
    code |= status;
  }
  enough = 1;
  for (int i = 0; i < THREADS; i++)
    pthread_join(thread[i], NULL);
  code |= MPI_File_close(&file);
  check(code == 0);
}

static void threads(const char *path) {
  pthread_t thread[THREADS];
  MPI_File file = create(path);
  for (int i = 0; i < THREADS; i++)
    pthread_create(&thread[i], NULL, write_many, &file);
  for (int i = 0; i < THREADS; i++)
    pthread_join(thread[i], NULL);
  check(MPI_File_close(&file) == MPI_SUCCESS);
}

/* MPI 4's calls with large counts; without them, the same by the others. */
static void large(const char *path) {
  MPI_File file = create(path);
#if MPI_VERSION >= 4
  int code = MPI_File_write_at_c(file, place(0), block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
  code |= MPI_File_write_at_all_c(file, place(1), block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
#else
  int code = MPI_File_write_at(file, place(0), block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
  code |= MPI_File_write_at_all(file, place(1), block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
#endif
  code |= MPI_File_close(&file);
  check(code == MPI_SUCCESS);
}

static void shared_pointer(const char *path) {
  MPI_File file = create(path);
  int code = MPI_File_write_shared(file, block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
  code |= MPI_File_write_ordered(file, block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
  code |= MPI_File_close(&file);
  check(code == MPI_SUCCESS);
}

/* A parent whose child makes a file of its own. */
static void spawning(const char *path, const char *program) {
  char name[4096];
  char *words[] = {"own", name, NULL};
  MPI_Comm child;
  snprintf(name, sizeof name, "%s.child", path);
  int code = MPI_Comm_spawn(program, words, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &child,
                            MPI_ERRCODES_IGNORE);
  own(path);
  code |= MPI_Comm_disconnect(&child);
  check(code == MPI_SUCCESS);
}

static void aborting(const char *path) {
  create(path);
  if (rank == 0)
    MPI_Abort(MPI_COMM_WORLD, 7);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void many(const char *path) {
  char name[4096];
  int code = MPI_SUCCESS;
  for (int i = 0; i < FILES && code == MPI_SUCCESS; i++) {
    snprintf(name, sizeof name, "%s.%d", path, i);
    MPI_File file = open_file(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_WRONLY);
    code = MPI_File_close(&file);
    unlink(name);
  }
  check(code == MPI_SUCCESS);
}

/* Nanoseconds of one write, for the figure in docs/reference/mpi.md: observed cost PATH. */
static void cost(const char *path) {
  enum { WRITES = 20000 };
  MPI_File file = create(path);
  double start = MPI_Wtime();
  for (int i = 0; i < WRITES; i++)
    MPI_File_write_at(file, 0, block, 8, MPI_BYTE, MPI_STATUS_IGNORE);
  printf("%.0f\n", (MPI_Wtime() - start) / WRITES * 1e9);
  MPI_File_close(&file);
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(const char *path);
  } cases[] = {
      {"independent", independent},
      {"nonblocking", nonblocking},
      {"split", split},
      {"own", own},
      {"sieve", sieve},
      {"sieve_twice", sieve_twice},
      {"missing", missing},
      {"info", info},
      {"unclosed", unclosed},
      {"forked", forked},
      {"forked_opens", forked_opens},
      {"line_ends", line_ends},
      {"jumping", jumping},
      {"signals", signals},
      {"decimal_comma", decimal_comma},
      {"no_handle", no_handle},
      {"threads", threads},
      {"forked_threads", forked_threads},
      {"aborting", aborting},
      {"many", many},
      {"cost", cost},
      {"attributes", attributes},
      {"large", large},
      {"shared_pointer", shared_pointer},
  };
  int provided;
  if (argc != 3)
    return 2;
  memset(block, 'x', sizeof block);
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (strcmp(cases[i].name, argv[1]) == 0)
      cases[i].run(argv[2]);
  MPI_Comm parent;
  MPI_Comm_get_parent(&parent);
  if (strcmp(argv[1], "spawning") == 0)
    spawning(argv[2], argv[0]);
  if (parent != MPI_COMM_NULL)
    MPI_Comm_disconnect(&parent);
  MPI_Finalize();
  return 0;
}
