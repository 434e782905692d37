/* MPI programs that end, or go on, in ways of their own: ending CASE PATH. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int rank, ranks;

static void write_block(const char *path) {
  char block[1000];
  MPI_File file;
  memset(block, 'x', sizeof block);
  MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_File_write_at(file, 0, block, sizeof block, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
}

static void finishing(const char *path) { write_block(path); }

/* Until somebody makes the file. */
static void waiting(const char *path) {
  const struct timespec pause = {.tv_nsec = 10000000};
  while (access(path, F_OK) != 0)
    nanosleep(&pause, NULL);
}

static void leaving(const char *path) {
  write_block(path);
  _exit(0);
}

static void aborting(const char *path) {
  write_block(path);
  if (rank == ranks - 1)
    MPI_Abort(MPI_COMM_WORLD, 7);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* In a child that ends by exit. */
static void forking(const char *path) {
  write_block(path);
  pid_t child = fork();
  if (child == 0) {
    FILE *file = fopen(path, "a");
    if (file == NULL || fputs("of the child", file) < 0 || fclose(file) != 0)
      _exit(1);
    exit(0);
  }
  int status;
  if (waitpid(child, &status, 0) != child || status != 0)
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void changing_directory(const char *path) {
  if (chdir("/") != 0)
    abort();
  write_block(path);
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(const char *path);
  } cases[] = {
      {"finishing", finishing}, {"waiting", waiting}, {"leaving", leaving},
      {"aborting", aborting},   {"forking", forking}, {"changing_directory", changing_directory},
  };
  if (argc != 3)
    return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (strcmp(cases[i].name, argv[1]) == 0)
      cases[i].run(argv[2]);
  printf("rank %d ok\n", rank);
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
