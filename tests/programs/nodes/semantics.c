#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* semantics PATH ROUNDS CASE...: what MPI-IO promises of one shared file, and what holds for POSIX
 * opens of it. For each CASE prints a line of JSON with the number of wrong bytes or answers on all
 * ranks. Rank r + 1 must be on another node than rank r. */
enum { RECORD = 37, RECORDS = 200, BLOCK = RECORD * RECORDS };

static int rank, ranks, next, rounds;
static char path[4096];
static MPI_Status *const none = MPI_STATUS_IGNORE;

static void check(int code, const char *what) {
  char text[MPI_MAX_ERROR_STRING];
  int length;
  if (code == MPI_SUCCESS)
    return;
  MPI_Error_string(code, text, &length);
  fprintf(stderr, "semantics: %s: %s\n", what, text);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }

static MPI_File opened(MPI_Comm comm, int mode, const char *hint, const char *value) {
  MPI_File file;
  MPI_Info info;
  MPI_Info_create(&info);
  if (hint)
    MPI_Info_set(info, hint, value);
  check(MPI_File_open(comm, path, mode, info, &file), "MPI_File_open");
  MPI_Info_free(&info);
  return file;
}

static MPI_File opened_by_all(void) {
  return opened(MPI_COMM_WORLD, MPI_MODE_RDWR | MPI_MODE_CREATE, NULL, NULL);
}

static void closed(MPI_File file) { check(MPI_File_close(&file), "MPI_File_close"); }

static void synced(MPI_File file) {
  check(MPI_File_sync(file), "MPI_File_sync");
  barrier();
  check(MPI_File_sync(file), "MPI_File_sync");
}

static void write_at(MPI_File file, MPI_Offset offset, const char *bytes, int count) {
  check(MPI_File_write_at(file, offset, bytes, count, MPI_BYTE, none), "MPI_File_write_at");
}

static void read_at(MPI_File file, MPI_Offset offset, char *bytes, int count) {
  check(MPI_File_read_at(file, offset, bytes, count, MPI_BYTE, none), "MPI_File_read_at");
}

static char letter(int of, int round) { return (char)('!' + (of * 31 + round) % 90); }

static long wrong(const char *bytes, size_t count, char expected) {
  long found = 0;
  for (size_t i = 0; i < count; i++)
    found += bytes[i] != expected;
  return found;
}

/* Records of all ranks side by side in the same pages, written one by one. */
static void write_interleaved(MPI_File file, int round) {
  char record[RECORD];
  memset(record, letter(rank, round), sizeof record);
  for (int i = 0; i < RECORDS; i++)
    write_at(file, ((MPI_Offset)i * ranks + rank) * RECORD, record, RECORD);
}

static long read_interleaved(MPI_File file, int round) {
  size_t count = (size_t)BLOCK * (size_t)ranks;
  char *bytes = calloc(count, 1);
  long found = 0;
  read_at(file, 0, bytes, (int)count);
  for (size_t i = 0; i < count; i += RECORD)
    found += wrong(bytes + i, RECORD, letter((int)(i / RECORD) % ranks, round));
  free(bytes);
  return found;
}

static long pages(void) {
  MPI_File file = opened_by_all();
  long found = 0;
  for (int round = 0; round < rounds; round++) {
    write_interleaved(file, round);
    synced(file);
    found += read_interleaved(file, round);
    synced(file);
  }
  closed(file);
  return found;
}

static long strided(const char *hint, int collective) {
  MPI_File file =
      opened(MPI_COMM_WORLD, MPI_MODE_RDWR | MPI_MODE_CREATE, hint, hint ? "enable" : NULL);
  MPI_Datatype view;
  char *bytes = malloc(BLOCK);
  long found = 0;
  MPI_Type_vector(RECORDS, RECORD, ranks * RECORD, MPI_BYTE, &view);
  MPI_Type_commit(&view);
  for (int round = 0; round < rounds; round++) {
    memset(bytes, letter(rank, round), BLOCK);
    check(MPI_File_set_view(file, rank * RECORD, MPI_BYTE, view, "native", MPI_INFO_NULL), "view");
    check(collective ? MPI_File_write_at_all(file, 0, bytes, BLOCK, MPI_BYTE, none)
                     : MPI_File_write_at(file, 0, bytes, BLOCK, MPI_BYTE, none),
          "a write through a view");
    synced(file);
    check(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), "view");
    found += read_interleaved(file, round);
    synced(file);
  }
  MPI_Type_free(&view);
  free(bytes);
  closed(file);
  return found;
}

static long sieving(void) { return strided("romio_ds_write", 0); }
static long collective(void) { return strided("romio_cb_write", 1); }
static long unbuffered(void) { return strided(NULL, 1); }

/* In atomic mode a barrier is enough; then nonatomic again. */
static long atomic(void) {
  MPI_File file = opened_by_all();
  char bytes[RECORD], expected[RECORD];
  long found = 0;
  for (int round = 0; round < rounds; round++) {
    check(MPI_File_set_atomicity(file, 1), "MPI_File_set_atomicity");
    memset(bytes, letter(rank, round), RECORD);
    write_at(file, (MPI_Offset)rank * RECORD, bytes, RECORD);
    barrier();
    read_at(file, (MPI_Offset)next * RECORD, expected, RECORD);
    found += wrong(expected, RECORD, letter(next, round));
    barrier();
    check(MPI_File_set_atomicity(file, 0), "MPI_File_set_atomicity");
    write_interleaved(file, round + 7);
    synced(file);
    found += read_interleaved(file, round + 7);
    barrier();
  }
  closed(file);
  return found;
}

/* Who writes after a barrier writes last, without a sync. */
static long order(void) {
  long found = 0;
  for (int round = 0; round < rounds; round++) {
    MPI_File file = opened_by_all();
    char *bytes = malloc((size_t)BLOCK * (size_t)ranks);
    memset(bytes, '0', (size_t)BLOCK * (size_t)ranks);
    if (rank == round % ranks)
      write_at(file, 0, bytes, BLOCK * ranks);
    barrier();
    write_interleaved(file, round);
    free(bytes);
    closed(file);
    barrier();
    file = opened_by_all();
    found += read_interleaved(file, round);
    closed(file);
    barrier();
  }
  return found;
}

/* Who reads after a barrier reads what was written last, also in place of what it has cached. */
static long barriers(void) {
  MPI_File file = opened_by_all();
  long found = 0;
  for (int round = 0; round < rounds; round++) {
    write_interleaved(file, round);
    barrier();
    found += read_interleaved(file, round);
    barrier();
  }
  closed(file);
  return found;
}

static long reopen(void) {
  long found = 0;
  for (int round = 0; round < rounds; round++) {
    MPI_File file = opened_by_all();
    write_interleaved(file, round);
    closed(file);
    barrier();
    file = opened_by_all();
    found += read_interleaved(file, round);
    closed(file);
    barrier();
  }
  return found;
}

/* Each rank also has the file open without MPI: what it reads there is what was written last. */
static long posix(void) {
  MPI_File file = opened_by_all();
  int own = open(path, O_RDWR);
  char bytes[RECORD];
  long found = own < 0;
  for (int round = 0; round < rounds; round++) {
    memset(bytes, letter(rank, round), RECORD);
    write_at(file, (MPI_Offset)rank * RECORD, bytes, RECORD);
    barrier();
    found += pread(own, bytes, RECORD, (off_t)next * RECORD) != RECORD;
    found += wrong(bytes, RECORD, letter(next, round));
    barrier();
  }
  found += close(own) != 0;
  closed(file);
  return found;
}

/* Every record of a shared pointer is there once. */
static long shared(void) {
  MPI_File file = opened_by_all();
  int *seen = calloc((size_t)ranks, sizeof *seen);
  char record[RECORD];
  long found = 0;
  memset(record, letter(rank, 0), RECORD);
  for (int i = 0; i < 50; i++)
    check(MPI_File_write_shared(file, record, RECORD, MPI_BYTE, none), "MPI_File_write_shared");
  synced(file);
  for (int i = 0; i < 50 * ranks; i++) {
    read_at(file, (MPI_Offset)i * RECORD, record, RECORD);
    for (int of = 0; of < ranks; of++)
      seen[of] += wrong(record, RECORD, letter(of, 0)) == 0;
  }
  for (int of = 0; of < ranks; of++)
    found += seen[of] != 50;
  free(seen);
  closed(file);
  return found;
}

/* Files that one rank alone opens are as POSIX's: a barrier is enough. */
static long self(void) {
  MPI_File file = MPI_FILE_NULL;
  long found = 0;
  if (rank == 0)
    file = opened(MPI_COMM_SELF, MPI_MODE_RDWR | MPI_MODE_CREATE, NULL, NULL);
  barrier();
  if (rank != 0)
    file = opened(MPI_COMM_SELF, MPI_MODE_RDWR, NULL, NULL);
  for (int round = 0; round < rounds; round++) {
    char bytes[RECORD];
    memset(bytes, letter(rank, round), RECORD);
    write_at(file, (MPI_Offset)rank * RECORD, bytes, RECORD);
    barrier();
    read_at(file, (MPI_Offset)next * RECORD, bytes, RECORD);
    found += wrong(bytes, RECORD, letter(next, round));
    barrier();
  }
  closed(file);
  return found;
}

/* Ranks that are no aggregators open the file late. */
static long deferred(void) {
  MPI_File file =
      opened(MPI_COMM_WORLD, MPI_MODE_RDWR | MPI_MODE_CREATE, "romio_no_indep_rw", "true");
  char *bytes = malloc(BLOCK);
  long found = 0;
  for (int round = 0; round < rounds; round++) {
    memset(bytes, letter(rank, round), BLOCK);
    check(MPI_File_write_at_all(file, (MPI_Offset)rank * BLOCK, bytes, BLOCK, MPI_BYTE, none),
          "MPI_File_write_at_all");
    synced(file);
    check(MPI_File_read_at_all(file, (MPI_Offset)next * BLOCK, bytes, BLOCK, MPI_BYTE, none),
          "MPI_File_read_at_all");
    found += wrong(bytes, BLOCK, letter(next, round));
    synced(file);
  }
  free(bytes);
  closed(file);
  return found;
}

static long sizes(void) {
  MPI_File file = opened_by_all();
  MPI_Offset size;
  char byte = 'x';
  long found = 0;
  for (int round = 0; round < rounds; round++) {
    check(MPI_File_set_size(file, 10), "MPI_File_set_size");
    barrier();
    check(MPI_File_get_size(file, &size), "MPI_File_get_size");
    found += size != 10;
    barrier();
    if (rank == round % ranks)
      write_at(file, 100 + round, &byte, 1);
    synced(file);
    check(MPI_File_get_size(file, &size), "MPI_File_get_size");
    found += size != 101 + round;
    barrier();
  }
  closed(file);
  MPI_File appending = opened(MPI_COMM_WORLD, MPI_MODE_WRONLY | MPI_MODE_APPEND, NULL, NULL);
  check(MPI_File_get_position(appending, &size), "MPI_File_get_position");
  found += size != 101 + rounds - 1;
  closed(appending);
  return found;
}

/* Each rank fills its own part beyond the quota: an error of a write, of sync or of close. */
static long full(void) {
  enum { MIB = 1 << 20 };
  MPI_File file = opened_by_all();
  char *bytes = malloc(MIB);
  int failed = 0;
  memset(bytes, 'f', MIB);
  for (int i = 0; i < 80; i++)
    failed |= MPI_File_write_at(file, ((MPI_Offset)i * ranks + rank) * MIB, bytes, MIB, MPI_BYTE,
                                none) != MPI_SUCCESS;
  failed |= MPI_File_sync(file) != MPI_SUCCESS;
  failed |= MPI_File_close(&file) != MPI_SUCCESS;
  free(bytes);
  return !failed;
}

static const struct {
  const char *name;
  long (*run)(void);
} cases[] = {
    {"pages", pages},           {"sieving", sieving}, {"collective", collective},
    {"unbuffered", unbuffered}, {"atomic", atomic},   {"order", order},
    {"barriers", barriers},     {"reopen", reopen},   {"posix", posix},
    {"shared", shared},         {"self", self},       {"deferred", deferred},
    {"sizes", sizes},           {"full", full},
};

static void run(const char *name, const char *base) {
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    if (strcmp(cases[i].name, name) != 0)
      continue;
    snprintf(path, sizeof path, "%s.%s", base, name);
    long found = cases[i].run(), all = 0;
    MPI_Reduce(&found, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
      printf("{\"case\": \"%s\", \"wrong\": %ld}\n", name, all);
    barrier();
    return;
  }
  fprintf(stderr, "semantics: no case %s\n", name);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  next = (rank + 1) % ranks;
  rounds = argc > 2 ? atoi(argv[2]) : 0;
  for (int i = 3; i < argc; i++)
    run(argv[i], argv[1]);
  MPI_Finalize();
  return 0;
}
