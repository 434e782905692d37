#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* exchange PATH RECORDS RECORD_BYTES ROUNDS WAY...: for each WAY every rank writes its records of
 * one shared file PATH.WAY, record i of rank r at place i * ranks + r, then reads and compares
 * those of a rank on another node. Each round has new values, and the file stays open, so what a
 * node keeps of an earlier round shows. WAY is posix        a call per record, no synchronisation
 * but a barrier independent  an MPI-IO call per record sieving      one independent MPI-IO call
 * through a view with holes collective   one collective call through the same view, read back once
 * more by an independent one, as the aggregator of a place is the same rank for writing and reading
 * FOREBAY_BED_NODE is the node of a rank. Rank r + 1 may be on the node of rank r. Prints a line of
 * JSON for each WAY. */
enum way { POSIX, INDEPENDENT, SIEVING, COLLECTIVE, WAYS };
static const char *const ways[WAYS] = {"posix", "independent", "sieving", "collective"};

struct exchange {
  enum way way;
  char path[4096];
  int rank, ranks, records, record_bytes;
  MPI_File file;
  int descriptor; /* of POSIX */
};

static void fail(const char *what, const char *why) {
  fprintf(stderr, "exchange: %s: %s\n", what, why);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void check(int code, const char *what) {
  char text[MPI_MAX_ERROR_STRING];
  int length;
  if (code == MPI_SUCCESS)
    return;
  MPI_Error_string(code, text, &length);
  fail(what, text);
}

/* The next rank on another node; the next rank where all are on one. Returns whether it is on
 * another. */
static int choose_partner(int rank, int ranks, int *partner) {
  const char *name = getenv("FOREBAY_BED_NODE");
  int node = name ? atoi(name) : 0, *nodes = calloc((size_t)ranks, sizeof *nodes);
  if (!nodes)
    fail("calloc", "no memory");
  MPI_Allgather(&node, 1, MPI_INT, nodes, 1, MPI_INT, MPI_COMM_WORLD);
  int step = 1;
  while (step < ranks && nodes[(rank + step) % ranks] == node)
    step++;
  *partner = (rank + (step < ranks ? step : 1)) % ranks;
  free(nodes);
  return step < ranks;
}

/* The bytes of all records of a rank in a round, one after the other. */
static void fill(unsigned char *bytes, const struct exchange *x, int rank, int round) {
  size_t count = (size_t)x->records * (size_t)x->record_bytes;
  uint64_t seed = (uint64_t)round << 32 | (uint64_t)rank;
  for (size_t i = 0; i < count; i++) {
    uint64_t mixed = (seed ^ i / 8 << 8) * 0x9E3779B97F4A7C15u;
    bytes[i] = (unsigned char)(mixed >> (8 + i % 8 * 7));
  }
}

static MPI_Offset place(const struct exchange *x, int rank, int record) {
  return ((MPI_Offset)record * x->ranks + rank) * x->record_bytes;
}

static void open_file(struct exchange *x) {
  MPI_Info info;
  if (x->way == POSIX) {
    x->descriptor = open(x->path, O_RDWR | O_CREAT, 0644);
    if (x->descriptor < 0)
      fail(x->path, strerror(errno));
    return;
  }
  MPI_Info_create(&info);
  MPI_Info_set(info, "romio_ds_write", x->way == SIEVING ? "enable" : "disable");
  MPI_Info_set(info, "romio_ds_read", x->way == SIEVING ? "enable" : "disable");
  char every_rank[16];
  snprintf(every_rank, sizeof every_rank, "%d", x->ranks);
  MPI_Info_set(info, "cb_nodes", every_rank); /* each node moves data */
  MPI_Info_set(info, "cb_config_list", "*:*");
  MPI_Info_set(info, "romio_cb_write", "enable");
  MPI_Info_set(info, "romio_cb_read", "enable");
  check(MPI_File_open(MPI_COMM_WORLD, x->path, MPI_MODE_RDWR | MPI_MODE_CREATE, info, &x->file),
        "MPI_File_open");
  MPI_Info_free(&info);
}

static void close_file(struct exchange *x) {
  if (x->way == POSIX) {
    if (close(x->descriptor) != 0)
      fail(x->path, strerror(errno));
  } else {
    check(MPI_File_close(&x->file), "MPI_File_close");
  }
}

/* One call for each record. */
static void move_records(const struct exchange *x, int rank, unsigned char *bytes, int writing) {
  for (int record = 0; record < x->records; record++) {
    unsigned char *at = bytes + (size_t)record * (size_t)x->record_bytes;
    MPI_Offset offset = place(x, rank, record);
    if (x->way == POSIX) {
      size_t length = (size_t)x->record_bytes;
      ssize_t moved = writing ? pwrite(x->descriptor, at, length, offset)
                              : pread(x->descriptor, at, length, offset);
      if (moved < 0)
        fail(writing ? "pwrite" : "pread", strerror(errno));
    } else if (writing) {
      check(MPI_File_write_at(x->file, offset, at, x->record_bytes, MPI_BYTE, MPI_STATUS_IGNORE),
            "MPI_File_write_at");
    } else {
      check(MPI_File_read_at(x->file, offset, at, x->record_bytes, MPI_BYTE, MPI_STATUS_IGNORE),
            "MPI_File_read_at");
    }
  }
}

/* All records of a rank in one call, through a view of its places. */
static void move_view(const struct exchange *x, int rank, unsigned char *bytes, int writing,
                      int collective) {
  MPI_Datatype view;
  int count = x->records * x->record_bytes;
  MPI_Status *none = MPI_STATUS_IGNORE;
  MPI_Type_vector(x->records, x->record_bytes, x->ranks * x->record_bytes, MPI_BYTE, &view);
  MPI_Type_commit(&view);
  check(MPI_File_set_view(x->file, place(x, rank, 0), MPI_BYTE, view, "native", MPI_INFO_NULL),
        "MPI_File_set_view");
  if (collective)
    check(writing ? MPI_File_write_at_all(x->file, 0, bytes, count, MPI_BYTE, none)
                  : MPI_File_read_at_all(x->file, 0, bytes, count, MPI_BYTE, none),
          "a collective call");
  else
    check(writing ? MPI_File_write_at(x->file, 0, bytes, count, MPI_BYTE, none)
                  : MPI_File_read_at(x->file, 0, bytes, count, MPI_BYTE, none),
          "an independent call");
  MPI_Type_free(&view);
}

static void move(const struct exchange *x, int rank, unsigned char *bytes, int writing) {
  if (x->way == POSIX || x->way == INDEPENDENT)
    move_records(x, rank, bytes, writing);
  else
    move_view(x, rank, bytes, writing, x->way == COLLECTIVE);
}

static long differences(const unsigned char *bytes, const unsigned char *expected, size_t count) {
  long found = 0;
  for (size_t i = 0; i < count; i++)
    found += bytes[i] != expected[i];
  return found;
}

/* What all wrote can be read by all after it: MPI's sync, barrier, sync; of POSIX the barrier. */
static void synchronise(const struct exchange *x) {
  if (x->way != POSIX)
    check(MPI_File_sync(x->file), "MPI_File_sync");
  MPI_Barrier(MPI_COMM_WORLD);
  if (x->way != POSIX)
    check(MPI_File_sync(x->file), "MPI_File_sync");
}

static long run(struct exchange *x, int partner, int rounds) {
  size_t count = (size_t)x->records * (size_t)x->record_bytes;
  unsigned char *bytes = malloc(count), *expected = malloc(count);
  long mismatches = 0;
  if (!bytes || !expected)
    fail("malloc", "no memory");
  open_file(x);
  for (int round = 0; round < rounds; round++) {
    fill(bytes, x, x->rank, round);
    move(x, x->rank, bytes, 1);
    synchronise(x);
    memset(bytes, 0, count);
    fill(expected, x, partner, round);
    move(x, partner, bytes, 0);
    mismatches += differences(bytes, expected, count);
    if (x->way == COLLECTIVE) {
      memset(bytes, 0, count);
      move_view(x, partner, bytes, 0, 0);
      mismatches += differences(bytes, expected, count);
    }
    synchronise(x);
  }
  close_file(x);
  free(bytes);
  free(expected);
  return mismatches;
}

static enum way way_of(const char *name) {
  for (int way = 0; way < WAYS; way++)
    if (strcmp(ways[way], name) == 0)
      return (enum way)way;
  fail("no such way", name);
  return WAYS;
}

int main(int argc, char **argv) {
  struct exchange x = {0};
  int partner;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &x.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &x.ranks);
  if (argc < 6)
    fail("usage", "exchange PATH RECORDS RECORD_BYTES ROUNDS WAY...");
  x.records = atoi(argv[2]);
  x.record_bytes = atoi(argv[3]);
  int rounds = atoi(argv[4]), elsewhere = choose_partner(x.rank, x.ranks, &partner);
  for (char **name = argv + 5; *name; name++) {
    long found[2], sum[2];
    x.way = way_of(*name);
    snprintf(x.path, sizeof x.path, "%s.%s", argv[1], *name);
    found[0] = run(&x, partner, rounds);
    found[1] = elsewhere ? (long)x.records * x.record_bytes * rounds : 0;
    MPI_Reduce(found, sum, 2, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (x.rank == 0)
      printf("{\"way\": \"%s\", \"mismatches\": %ld, \"bytes_of_other_nodes\": %ld}\n", *name,
             sum[0], sum[1]);
  }
  MPI_Finalize();
  return 0;
}
