/* epio: a file per rank, no MPI-IO. Each dump adds one Fortran unformatted record per cell: its
 * length in bytes as a 4-byte mark, the points without ghosts, the same mark. */
#include "variants.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MARK_BYTES = sizeof(int32_t), POINT_BYTES = COMPONENTS * (int)sizeof(double) };

static const struct attempt removing = {"unlink", hint_no_place};
static const struct attempt creating = {"open", hint_no_place};
static const struct attempt opening = {"open",
                                       "\nhint: epio is read on as many ranks as have written it"};
static const struct attempt measuring = {
    "fstat", "\nhint: epio is read with the deck and on as many ranks as have written it"};
static const struct attempt writing = {"write", hint_out_of_space};
static const struct attempt reading = {"read", ""};
static const struct attempt rewinding = {"lseek", ""};
static const struct attempt syncing = {"fsync", hint_out_of_space};
static const struct attempt closing = {"close", hint_out_of_space};

static bool agreed(const struct dump_file *file, const struct attempt *attempt, const char *fault) {
  return attempt_agreed(file->comm, file->epio.path, attempt, fault);
}

static int64_t file_bytes(const struct dump_file *file) {
  const struct partition *partition = file->partition;
  return file->dumps * (partition->points * POINT_BYTES + partition->side * 2 * MARK_BYTES);
}

static bool prepare(struct dump_file *file) {
  int rank;
  int64_t largest = 0;
  MPI_Comm_rank(file->comm, &rank);
  snprintf(file->epio.path, sizeof file->epio.path, "%s.%04d", file->path, rank);
  file->epio.descriptor = -1;
  for (int index = 0; index < file->partition->side; index++) {
    int64_t points = cell_points(&file->partition->cells[index]);
    largest = points > largest ? points : largest;
  }
  file->epio.record = malloc((size_t)(largest * POINT_BYTES + 2 * MARK_BYTES));
  return attempt_memory(file->comm, file->epio.record != NULL, "a record",
                        "run on more ranks or use a smaller grid");
}

static void give_up(struct dump_file *file) {
  if (file->epio.descriptor >= 0)
    close(file->epio.descriptor);
  file->epio.descriptor = -1;
  free(file->epio.record);
  file->epio.record = NULL;
}

static bool open_timed(struct dump_file *file, const struct attempt *attempt, int flags) {
  double start = MPI_Wtime();
  file->epio.descriptor = open(file->epio.path, flags, 0666);
  file->times->open_s += MPI_Wtime() - start;
  return agreed(file, attempt, file->epio.descriptor >= 0 ? NULL : strerror(errno));
}

static bool create(struct dump_file *file) {
  bool good = prepare(file);
  if (good) {
    bool gone = unlink(file->epio.path) == 0 || errno == ENOENT;
    good = agreed(file, &removing, gone ? NULL : strerror(errno));
  }
  file->writing = true;
  good = good && open_timed(file, &creating, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC);
  if (!good)
    give_up(file);
  return good;
}

static bool has_size(const struct dump_file *file) {
  struct stat status;
  char fault[96];
  if (fstat(file->epio.descriptor, &status) != 0)
    return agreed(file, &measuring, strerror(errno));
  snprintf(fault, sizeof fault, "the file holds %lld bytes, %lld expected",
           (long long)status.st_size, (long long)file_bytes(file));
  return agreed(file, &measuring, status.st_size == file_bytes(file) ? NULL : fault);
}

static bool open_existing(struct dump_file *file) {
  bool good = prepare(file) && open_timed(file, &opening, O_RDONLY | O_CLOEXEC) && has_size(file);
  if (!good)
    give_up(file);
  return good;
}

/* Points of one cell on their way between the padded array and a record. */
struct packing {
  const double *source;
  double *target;
  unsigned char *next; /* in the record */
};

static void pack_row(const struct row *row, void *context) {
  struct packing *packing = context;
  size_t bytes = (size_t)row->length * POINT_BYTES;
  memcpy(packing->next, packing->source + row->buffer_point * COMPONENTS, bytes);
  packing->next += bytes;
}

static void unpack_row(const struct row *row, void *context) {
  struct packing *packing = context;
  size_t bytes = (size_t)row->length * POINT_BYTES;
  memcpy(packing->target + row->buffer_point * COMPONENTS, packing->next, bytes);
  packing->next += bytes;
}

/* The sums of what a rank moves per dump fit an int (partition_make), so every mark does. */
static int32_t record_length(const struct dump_file *file, int index) {
  return (int32_t)(cell_points(&file->partition->cells[index]) * POINT_BYTES);
}

/* In a sequential file the record that was written last is the last one. */
static const char *truncate_after_rewind(struct dump_file *file) {
  if (!file->epio.rewound)
    return NULL;
  file->epio.rewound = false;
  off_t end = lseek(file->epio.descriptor, 0, SEEK_CUR);
  return end >= 0 && ftruncate(file->epio.descriptor, end) == 0 ? NULL : strerror(errno);
}

/* Writes or reads the record with its marks. NULL, or the fault. */
static const char *move_record(struct dump_file *file, bool writes, int32_t length) {
  int descriptor = file->epio.descriptor;
  unsigned char *next = file->epio.record, *end = next + length + 2 * MARK_BYTES;
  while (next < end) {
    size_t left = (size_t)(end - next);
    ssize_t moved = writes ? write(descriptor, next, left) : read(descriptor, next, left);
    if (moved < 0 && errno != EINTR)
      return strerror(errno);
    if (moved == 0 && !writes)
      return "the file ends inside a record";
    next += moved > 0 ? moved : 0;
  }
  file->calls++;
  return NULL;
}

static const char *write_record(struct dump_file *file, int index, const double *values) {
  unsigned char *record = file->epio.record;
  int32_t length = record_length(file, index);
  struct packing packing = {.source = values, .next = record + MARK_BYTES};
  memcpy(record, &length, MARK_BYTES);
  partition_each_row_of(file->partition, index, pack_row, &packing);
  memcpy(packing.next, &length, MARK_BYTES);
  const char *fault = move_record(file, true, length);
  return fault != NULL ? fault : truncate_after_rewind(file);
}

static const char *read_record(struct dump_file *file, int index, double *values) {
  unsigned char *record = file->epio.record;
  int32_t length = record_length(file, index), first, last;
  struct packing packing = {.target = values, .next = record + MARK_BYTES};
  const char *fault = move_record(file, false, length);
  if (fault != NULL)
    return fault;
  memcpy(&first, record, MARK_BYTES);
  memcpy(&last, record + MARK_BYTES + length, MARK_BYTES);
  if (first != length || last != length)
    return "a record mark is wrong";
  partition_each_row_of(file->partition, index, unpack_row, &packing);
  return NULL;
}

static bool write_records(struct dump_file *file, int dump, const double *values) {
  (void)dump; /* dump follows dump */
  const char *fault = NULL;
  double start = MPI_Wtime();
  for (int index = 0; index < file->partition->side && fault == NULL; index++)
    fault = write_record(file, index, values);
  file->times->write_s += MPI_Wtime() - start;
  return agreed(file, &writing, fault);
}

static bool read_records(struct dump_file *file, int dump, double *values) {
  (void)dump;
  const char *fault = NULL;
  double start = MPI_Wtime();
  for (int index = 0; index < file->partition->side && fault == NULL; index++)
    fault = read_record(file, index, values);
  file->times->read_s += MPI_Wtime() - start;
  return agreed(file, &reading, fault);
}

static bool rewind_file(struct dump_file *file) {
  bool good = lseek(file->epio.descriptor, 0, SEEK_SET) == 0;
  file->epio.rewound = true;
  return agreed(file, &rewinding, good ? NULL : strerror(errno));
}

static bool sync_file(struct dump_file *file) {
  double start = MPI_Wtime();
  bool good = fsync(file->epio.descriptor) == 0;
  file->times->sync_s += MPI_Wtime() - start;
  return agreed(file, &syncing, good ? NULL : strerror(errno));
}

static bool close_file(struct dump_file *file) {
  double start = MPI_Wtime();
  bool good = close(file->epio.descriptor) == 0;
  file->times->close_s += MPI_Wtime() - start;
  const char *fault = good ? NULL : strerror(errno);
  file->epio.descriptor = -1;
  bool all_good = agreed(file, &closing, fault);
  if (all_good)
    give_up(file);
  return all_good;
}

const struct variant variant_epio = {
    .name = "epio",
    .file_name = "btio.epio.out",
    .file_per_rank = true,
    .create = create,
    .open = open_existing,
    .write = write_records,
    .read = read_records,
    .rewind = rewind_file,
    .sync = sync_file,
    .close = close_file,
    .give_up = give_up,
};
