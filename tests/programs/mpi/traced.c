/* Small MPI-IO programs whose trace is to be complete: traced CASE PATH. Every rank ends with an
 * error if a call of its own fails. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 1000, BLOCKS = 4, THREADS = 3, MANY = 20000 };

static int rank, ranks;
static char block[BLOCK * BLOCKS];

static void must(int code) {
  if (code != MPI_SUCCESS)
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static MPI_File open_on(MPI_Comm comm, const char *path, int mode) {
  MPI_File file;
  must(MPI_File_open(comm, path, mode, MPI_INFO_NULL, &file));
  return file;
}

static MPI_File create(const char *path) {
  return open_on(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
}

static MPI_Offset place(int i) { return (MPI_Offset)(i * ranks + rank) * BLOCK; }

/* One collective write through a view of the type, and one of a count of it from memory; then the
 * type is freed, so that its handle may come back as the next one's. */
static void write_typed(MPI_File file, MPI_Datatype type) {
  MPI_Count size;
  MPI_Aint lower, extent;
  must(MPI_Type_commit(&type));
  MPI_Type_size_x(type, &size);
  MPI_Type_get_true_extent(type, &lower, &extent);
  char *memory = calloc(2, (size_t)(extent > lower ? extent + lower : extent) + 4096);
  must(MPI_File_set_view(file, rank * 4096, MPI_BYTE, type, "native", MPI_INFO_NULL));
  must(MPI_File_write_at_all(file, size, memory, (int)size, MPI_BYTE, MPI_STATUS_IGNORE));
  must(MPI_File_set_view(file, rank * 4096, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  must(MPI_File_write_at_all(file, 0, memory, 1, type, MPI_STATUS_IGNORE));
  free(memory);
  must(MPI_Type_free(&type));
}

static MPI_Datatype struct_of(MPI_Datatype inner) {
  int lengths[] = {1, 2, 3};
  MPI_Aint places[] = {0, 64, 256};
  MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE, inner}, type;
  must(MPI_Type_create_struct(3, lengths, places, types, &type));
  return type;
}

static MPI_Datatype darray(void) {
  int sizes[] = {16, 12}, how[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
  int arguments[] = {MPI_DISTRIBUTE_DFLT_DARG, 2}, grid[] = {ranks, 1};
  MPI_Datatype type;
  must(MPI_Type_create_darray(ranks, rank, 2, sizes, how, arguments, grid, MPI_ORDER_FORTRAN,
                              MPI_FLOAT, &type));
  return type;
}

static void types(const char *path) {
  int lengths[] = {2, 1, 3}, places[] = {0, 5, 9};
  int sizes[] = {8, 6, 4}, parts[] = {2, 3, 2}, starts[] = {rank, 1, 1};
  MPI_Aint bytes[] = {8, 40, 100};
  MPI_Datatype type, inner;
  MPI_File file = create(path);
  MPI_Type_contiguous(7, MPI_SHORT, &type), write_typed(file, type);
  MPI_Type_vector(3, 2, 5, MPI_INT, &type), write_typed(file, type);
  MPI_Type_create_hvector(3, 2, 50, MPI_CHAR, &type), write_typed(file, type);
  MPI_Type_indexed(3, lengths, places, MPI_FLOAT, &type), write_typed(file, type);
  MPI_Type_create_hindexed(3, lengths, bytes, MPI_DOUBLE, &type), write_typed(file, type);
  MPI_Type_create_indexed_block(3, 2, places, MPI_INT, &type), write_typed(file, type);
  MPI_Type_create_hindexed_block(3, 2, bytes, MPI_INT, &type), write_typed(file, type);
  MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type);
  write_typed(file, type);
  MPI_Type_create_resized(MPI_INT, 0, 16, &inner), MPI_Type_contiguous(5, inner, &type);
  write_typed(file, type);
  write_typed(file, struct_of(inner));
  MPI_Type_vector(2, 1, 3, inner, &type), MPI_Type_free(&inner);
  MPI_Type_dup(type, &inner), MPI_Type_free(&type);
  write_typed(file, struct_of(inner)), MPI_Type_free(&inner);
  write_typed(file, darray());
  must(MPI_File_close(&file));
}

/* A type of absolute addresses, as libraries make them for scattered memory. A replay needs memory
 * for all between. */
static void addresses(const char *path) {
  static char memory[4 << 20];
  int lengths[] = {BLOCK, BLOCK};
  MPI_Aint places[2];
  MPI_Datatype type;
  MPI_Get_address(memory, &places[0]);
  MPI_Get_address(memory + sizeof memory - BLOCK, &places[1]);
  MPI_Type_create_hindexed(2, lengths, places, MPI_BYTE, &type);
  must(MPI_Type_commit(&type));
  MPI_File file = create(path);
  must(MPI_File_write_at_all(file, rank * 2 * BLOCK, MPI_BOTTOM, 1, type, MPI_STATUS_IGNORE));
  must(MPI_File_close(&file));
  MPI_Type_free(&type);
}

static void communicators(const char *path) {
  char name[4096];
  MPI_Comm half, reversed;
  snprintf(name, sizeof name, "%s.own.%d", path, rank);
  MPI_File own = open_on(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_WRONLY);
  must(MPI_File_write(own, block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
  snprintf(name, sizeof name, "%s.half.%d", path, rank % 2);
  MPI_File shared = open_on(half, name, MPI_MODE_CREATE | MPI_MODE_WRONLY);
  must(MPI_File_write_at_all(shared, place(0), block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
  MPI_File all = open_on(reversed, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
  must(MPI_File_write_ordered(all, block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
  must(MPI_File_close(&shared));
  must(MPI_File_close(&own));
  must(MPI_File_close(&all));
  MPI_Comm_free(&half), MPI_Comm_free(&reversed);
}

static void nonblocking(const char *path) {
  MPI_Request requests[BLOCKS], one;
  int index, done = 0, indices[BLOCKS];
  MPI_File file = create(path);
  for (int i = 0; i < BLOCKS; i++)
    must(MPI_File_iwrite_at(file, place(i), block, BLOCK, MPI_BYTE, &requests[i]));
  must(MPI_Waitany(BLOCKS, requests, &index, MPI_STATUS_IGNORE));
  must(MPI_Waitsome(BLOCKS, requests, &done, indices, MPI_STATUSES_IGNORE));
  must(MPI_Waitall(BLOCKS, requests, MPI_STATUSES_IGNORE));
  must(MPI_File_iwrite_at_all(file, place(BLOCKS), block, BLOCK, MPI_BYTE, &one));
  must(MPI_Wait(&one, MPI_STATUS_IGNORE));
  must(MPI_File_sync(file));
  MPI_Barrier(MPI_COMM_WORLD);
  must(MPI_File_seek(file, place(1), MPI_SEEK_SET));
  must(MPI_File_iread(file, block, BLOCK, MPI_BYTE, &one));
  for (int is_done = 0; !is_done;)
    must(MPI_Test(&one, &is_done, MPI_STATUS_IGNORE));
  must(MPI_File_close(&file));
}

static void split(const char *path) {
  MPI_File file = create(path);
  must(MPI_File_write_at_all_begin(file, place(0), block, BLOCK, MPI_BYTE));
  must(MPI_File_write_at_all_end(file, block, MPI_STATUS_IGNORE));
  must(MPI_File_seek(file, place(1), MPI_SEEK_SET));
  must(MPI_File_write_all_begin(file, block, BLOCK, MPI_BYTE));
  must(MPI_File_write_all_end(file, block, MPI_STATUS_IGNORE));
  must(MPI_File_read_ordered_begin(file, block, BLOCK, MPI_BYTE));
  must(MPI_File_read_ordered_end(file, block, MPI_STATUS_IGNORE));
  must(MPI_File_close(&file));
}

static void shared_pointers(const char *path) {
  MPI_Offset size;
  MPI_File file = create(path);
  must(MPI_File_set_size(file, 10 * BLOCK));
  must(MPI_File_preallocate(file, 20 * BLOCK));
  must(MPI_File_get_size(file, &size));
  must(MPI_File_set_atomicity(file, 1));
  must(MPI_File_write_shared(file, block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
  must(MPI_File_write_ordered(file, block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
  must(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  must(MPI_File_read_shared(file, block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
  must(MPI_File_close(&file));
}

static void two_handles(const char *path) {
  MPI_File first = create(path), second = open_on(MPI_COMM_WORLD, path, MPI_MODE_RDONLY);
  must(MPI_File_write_at(first, place(0), block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
  must(MPI_File_sync(first));
  MPI_Barrier(MPI_COMM_WORLD);
  must(MPI_File_read_at_all(second, place(0), block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
  must(MPI_File_write_at(first, place(1), block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
  must(MPI_File_close(&second));
  must(MPI_File_close(&first));
}

struct worker {
  pthread_t thread;
  MPI_Comm comm;
  char path[4096];
};

/* Each thread has a file and a communicator of its own and makes collective calls on them: in
 * another order than that of the program they wait for each other for ever. */
static void *write_collectively(void *argument) {
  struct worker *worker = argument;
  MPI_File file = open_on(worker->comm, worker->path, MPI_MODE_CREATE | MPI_MODE_RDWR);
  for (int i = 0; i < 20; i++)
    must(MPI_File_write_at_all(file, place(i), block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
  must(MPI_File_close(&file));
  return NULL;
}

static void threads(const char *path) {
  struct worker workers[THREADS];
  for (int i = 0; i < THREADS; i++) {
    snprintf(workers[i].path, sizeof workers[i].path, "%s.%d", path, i);
    MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].comm);
  }
  for (int i = 0; i < THREADS; i++)
    pthread_create(&workers[i].thread, NULL, write_collectively, &workers[i]);
  for (int i = 0; i < THREADS; i++) {
    pthread_join(workers[i].thread, NULL);
    MPI_Comm_free(&workers[i].comm);
  }
}

/* Reads what was there, changes it, removes another file, fails to open a third. */
static void existing(const char *path) {
  char name[4096];
  MPI_File file = open_on(MPI_COMM_WORLD, path, MPI_MODE_RDWR), none;
  must(MPI_File_read_at_all(file, place(0), block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
  must(MPI_File_write_at_all(file, place(0), block, BLOCK / 2, MPI_BYTE, MPI_STATUS_IGNORE));
  must(MPI_File_close(&file));
  snprintf(name, sizeof name, "%s.gone", path);
  if (MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &none) == MPI_SUCCESS)
    MPI_Abort(MPI_COMM_WORLD, 4);
  file = create(name);
  must(MPI_File_close(&file));
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0)
    must(MPI_File_delete(name, MPI_INFO_NULL));
}

/* Removes the output of an earlier run, and makes it again. */
static void replaced(const char *path) {
  if (rank == 0)
    must(MPI_File_delete(path, MPI_INFO_NULL));
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File file = create(path);
  must(MPI_File_write_at_all(file, place(0), block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
  must(MPI_File_close(&file));
}

static void many(const char *path) {
  MPI_File file = create(path);
  for (int i = 0; i < MANY; i++)
    must(MPI_File_write_at(file, (i * 7919L % MANY) * 8, block, 8, MPI_BYTE, MPI_STATUS_IGNORE));
  must(MPI_File_close(&file));
}

/* Rank 0 dies between two collective writes; the file before it was closed. */
static void killed(const char *path) {
  many(path);
  char name[4096];
  snprintf(name, sizeof name, "%s.second", path);
  MPI_File file = create(name);
  must(MPI_File_write_at_all(file, place(0), block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0)
    raise(SIGKILL);
  MPI_File_write_at_all(file, place(1), block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Closes every descriptor that it did not open itself, and opens files in their places. */
static void descriptors(const char *path) {
  char name[4096], byte;
  for (int i = 3; i < 64; i++)
    if (i > 40)
      close(i);
  MPI_File file = create(path);
  snprintf(name, sizeof name, "%s.plain", path);
  FILE *plain = fopen(name, "w");
  for (int i = 0; i < MANY; i++)
    must(MPI_File_write_at(file, 0, block, 8, MPI_BYTE, MPI_STATUS_IGNORE));
  fputs("mine\n", plain);
  fclose(plain);
  must(MPI_File_close(&file));
  plain = fopen(name, "r");
  if (fread(&byte, 1, 1, plain) != 1 || byte != 'm')
    MPI_Abort(MPI_COMM_WORLD, 5);
  fclose(plain);
}

/* Nanoseconds of one write: traced cost PATH. */
static void cost(const char *path) {
  MPI_File file = create(path);
  double start_s = MPI_Wtime();
  for (int i = 0; i < MANY; i++)
    MPI_File_write_at(file, i * 8L, block, 8, MPI_BYTE, MPI_STATUS_IGNORE);
  printf("%.0f\n", (MPI_Wtime() - start_s) / MANY * 1e9);
  must(MPI_File_close(&file));
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(const char *path);
  } cases[] = {
      {"types", types},
      {"addresses", addresses},
      {"communicators", communicators},
      {"nonblocking", nonblocking},
      {"split", split},
      {"shared_pointers", shared_pointers},
      {"two_handles", two_handles},
      {"threads", threads},
      {"existing", existing},
      {"replaced", replaced},
      {"many", many},
      {"killed", killed},
      {"descriptors", descriptors},
      {"cost", cost},
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
  MPI_Finalize();
  return 0;
}
