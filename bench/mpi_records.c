#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* mpi_records PATH shared|own RECORDS RECORD_BYTES: each rank writes its records by MPI-IO, into
 * one file (record i of rank r at place i * ranks + r) or into a file of its own, until all is
 * synced. Then it reads and compares those of the next rank, which is to be on another node. Prints
 * the seconds of both phases, of the slowest rank. */
static int rank, ranks;

static void check(int code, const char *what) {
  if (code == MPI_SUCCESS)
    return;
  fprintf(stderr, "mpi_records: %s failed\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static MPI_File opened(const char *base, int is_shared, int of, int mode) {
  MPI_File file;
  char path[4096];
  snprintf(path, sizeof path, is_shared ? "%s" : "%s.%d", base, of);
  check(MPI_File_open(is_shared ? MPI_COMM_WORLD : MPI_COMM_SELF, path, mode, MPI_INFO_NULL, &file),
        "MPI_File_open");
  return file;
}

/* The bytes differ in each record. */
static void fill(unsigned char *record, size_t bytes, int of, int number) {
  uint64_t state = (uint64_t)of << 32 | (uint32_t)number;
  for (size_t i = 0; i + 8 <= bytes; i += 8) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    memcpy(record + i, &state, 8);
  }
}

static MPI_Offset place(int is_shared, int of, int number, int bytes) {
  return is_shared ? ((MPI_Offset)number * ranks + of) * bytes : (MPI_Offset)number * bytes;
}

static double write_all(const char *base, int is_shared, unsigned char *all, int records,
                        int bytes) {
  MPI_Barrier(MPI_COMM_WORLD);
  double start_s = MPI_Wtime();
  MPI_File file = opened(base, is_shared, rank, MPI_MODE_WRONLY | MPI_MODE_CREATE);
  for (int i = 0; i < records; i++)
    check(MPI_File_write_at(file, place(is_shared, rank, i, bytes), all + (size_t)i * (size_t)bytes,
                            bytes, MPI_BYTE, MPI_STATUS_IGNORE),
          "MPI_File_write_at");
  check(MPI_File_sync(file), "MPI_File_sync");
  check(MPI_File_close(&file), "MPI_File_close");
  MPI_Barrier(MPI_COMM_WORLD);
  return MPI_Wtime() - start_s;
}

static double read_all(const char *base, int is_shared, unsigned char *all, int records,
                       int bytes) {
  int of = (rank + 1) % ranks;
  MPI_Barrier(MPI_COMM_WORLD);
  double start_s = MPI_Wtime();
  MPI_File file = opened(base, is_shared, of, MPI_MODE_RDONLY);
  for (int i = 0; i < records; i++)
    check(MPI_File_read_at(file, place(is_shared, of, i, bytes), all + (size_t)i * (size_t)bytes,
                           bytes, MPI_BYTE, MPI_STATUS_IGNORE),
          "MPI_File_read_at");
  check(MPI_File_close(&file), "MPI_File_close");
  MPI_Barrier(MPI_COMM_WORLD);
  return MPI_Wtime() - start_s;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  check(argc == 5 ? MPI_SUCCESS : MPI_ERR_ARG, "the command line");
  int is_shared = strcmp(argv[2], "shared") == 0, records = atoi(argv[3]), bytes = atoi(argv[4]);
  unsigned char *all = malloc((size_t)records * (size_t)bytes);
  unsigned char *expected = malloc((size_t)bytes);
  for (int i = 0; i < records; i++)
    fill(all + (size_t)i * (size_t)bytes, (size_t)bytes, rank, i);
  double write_s = write_all(argv[1], is_shared, all, records, bytes);
  memset(all, 0, (size_t)records * (size_t)bytes);
  double read_s = read_all(argv[1], is_shared, all, records, bytes);
  for (int i = 0; i < records; i++) {
    fill(expected, (size_t)bytes, (rank + 1) % ranks, i);
    size_t whole = (size_t)bytes / 8 * 8;
    check(memcmp(all + (size_t)i * (size_t)bytes, expected, whole) ? MPI_ERR_IO : MPI_SUCCESS,
          "the comparison");
  }
  if (rank == 0)
    printf("{\"write_s\": %.6f, \"read_s\": %.6f}\n", write_s, read_s);
  MPI_Finalize();
  return 0;
}
