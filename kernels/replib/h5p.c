/* The report as one HDF5 file: /data, a row per simulation step and a column per compartment, and
 * in /mapping which cell a column belongs to. */
#include "report_file.h"

#ifndef HAVE_HDF5

const struct backend backend_h5p = {.name = "h5p"};

#else

#include "harness/hdf5_file.h"
#include "mapping.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIMENSIONS = 2, CHUNK_COLUMNS_MAX = 2048, MAGIC = 2682 };

struct hdf5_report {
  struct hdf5_file file;
  struct mapping mapping;
  double time[3]; /* first, behind the last, from one simulation step to the next: ms */
  hid_t data;
};

static const struct attempt defining = {
    "H5Dcreate", "\nhint: is the file system full, or a chunk of 2 x --sim-steps rows and up to "
                 "2048 columns beyond 4 GiB?"};
static const struct attempt writing = {"H5Dwrite", hint_out_of_space};
static const struct attempt opening = {
    "H5Dopen", "\nhint: was it written with other options or on another number of ranks?"};
static const struct attempt reading = {"H5Dread", ""};

static hsize_t rows_of_report(const struct report_file *file) {
  return (hsize_t)file->options->sim_steps * (hsize_t)file->options->rep_steps;
}

/* A run of this rank is its part of a row. */
static hsize_t columns_of_report(const struct report_file *file) {
  return (hsize_t)(file->distribution->step_values / file->distribution->run_count);
}

static struct hdf5_piece piece_of_step(const struct report_file *file, int step) {
  const struct run *run = file->distribution->runs;
  hsize_t rows = (hsize_t)file->options->sim_steps;
  hsize_t total[DIMENSIONS] = {rows_of_report(file), columns_of_report(file)};
  hsize_t first[DIMENSIONS] = {rows * (hsize_t)step, (hsize_t)run->first};
  hsize_t count[DIMENSIONS] = {rows, (hsize_t)run->count};
  return hdf5_piece_of(DIMENSIONS, total, first, count, true);
}

/* The chunks of the published program: two reporting steps by 2048 compartments at most. */
static void chunk_of(const struct report_file *file, hsize_t chunk[DIMENSIONS]) {
  hsize_t rows = 2 * (hsize_t)file->options->sim_steps, columns = columns_of_report(file);
  chunk[0] = rows < rows_of_report(file) ? rows : rows_of_report(file);
  chunk[1] = columns < CHUNK_COLUMNS_MAX ? columns : CHUNK_COLUMNS_MAX;
}

static bool prepare(struct report_file *file) {
  const struct run *run = file->distribution->runs;
  struct hdf5_report *report = calloc(1, sizeof *report);
  if (report == NULL)
    abort(); /* a few hundred bytes: nothing sensible is left to do */
  report->file =
      (struct hdf5_file){.comm = file->comm, .path = file->path, .times = file->times, .id = -1};
  report->time[1] = 0.1 * (double)rows_of_report(file);
  report->time[2] = 0.1;
  report->data = -1;
  file->hdf5 = report;
  return attempt_memory(file->comm,
                        mapping_make(file->comm, run->first, run->count, &report->mapping),
                        "the compartments of a rank", "use more ranks");
}

static void discard(struct report_file *file) {
  mapping_free(&file->hdf5->mapping);
  free(file->hdf5);
  file->hdf5 = NULL;
}

static void write_attribute(struct hdf5_file *file, const char *name, hsize_t count,
                            const int *values) {
  hid_t space = H5Screate_simple(1, &count, NULL);
  hid_t id = H5Acreate2(file->id, name, H5T_STD_U32LE, space, H5P_DEFAULT, H5P_DEFAULT);
  hdf5_check_or_abort(file, &defining, id);
  hdf5_check_or_abort(file, &writing, H5Awrite(id, H5T_NATIVE_INT, values));
  hdf5_check_or_abort(file, &writing, H5Aclose(id));
  H5Sclose(space);
}

/* A dataset in /mapping, and this rank's part of it. */
struct table {
  const char *name;
  hid_t stored, native;
  hsize_t total, first, count;
  const void *values;
};

enum { TABLES = 4 };

static void tables_of(const struct report_file *file, struct table tables[TABLES]) {
  const struct mapping *mapping = &file->hdf5->mapping;
  const struct run *run = file->distribution->runs;
  struct table gids = {.name = "/mapping/gids",
                       .stored = H5T_STD_U32LE,
                       .native = H5T_NATIVE_UINT32,
                       .total = (hsize_t)mapping->total,
                       .first = (hsize_t)mapping->first,
                       .count = (hsize_t)mapping->count,
                       .values = mapping->gids};
  for (int i = 0; i < TABLES; i++)
    tables[i] = gids;
  tables[1].name = "/mapping/index_pointer";
  tables[1].stored = H5T_STD_U64LE;
  tables[1].native = H5T_NATIVE_INT64;
  tables[1].values = mapping->columns;
  tables[2].name = "/mapping/element_id";
  tables[2].total = columns_of_report(file);
  tables[2].first = (hsize_t)run->first;
  tables[2].count = (hsize_t)run->count;
  tables[2].values = mapping->elements;
  tables[3] = (struct table){.name = "/mapping/time",
                             .stored = H5T_IEEE_F64LE,
                             .native = H5T_NATIVE_DOUBLE,
                             .total = 3,
                             .count = 3,
                             .values = file->hdf5->time};
}

/* Every rank its own piece, and all of them the times, without each other: so the published program
 * does it. */
static void write_table(struct hdf5_file *file, const struct table *table) {
  struct hdf5_piece piece = hdf5_piece_of(1, &table->total, &table->first, &table->count, false);
  hid_t id = H5Dcreate2(file->id, table->name, table->stored, piece.file, H5P_DEFAULT, H5P_DEFAULT,
                        H5P_DEFAULT);
  hdf5_check_or_abort(file, &defining, id);
  hdf5_check_or_abort(
      file, &writing,
      H5Dwrite(id, table->native, piece.memory, piece.file, piece.transfer, table->values));
  hdf5_wrote(file, H5Dget_offset(id), (int64_t)(table->total * H5Tget_size(table->stored)));
  hdf5_check_or_abort(file, &writing, H5Dclose(id));
  hdf5_piece_close(&piece);
}

static void write_mapping(struct report_file *file) {
  static const int magic[] = {MAGIC}, version[] = {0, 1};
  struct hdf5_file *hdf5 = &file->hdf5->file;
  struct table tables[TABLES];
  tables_of(file, tables);
  write_attribute(hdf5, "magic", 1, magic);
  write_attribute(hdf5, "version", 2, version);
  hid_t group = H5Gcreate2(hdf5->id, "/mapping", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  hdf5_check_or_abort(hdf5, &defining, group);
  for (int i = 0; i < TABLES; i++)
    write_table(hdf5, &tables[i]);
  hdf5_check_or_abort(hdf5, &writing, H5Gclose(group));
}

static void make_data(struct report_file *file) {
  struct hdf5_report *report = file->hdf5;
  hsize_t chunk[DIMENSIONS], size[DIMENSIONS] = {rows_of_report(file), columns_of_report(file)};
  chunk_of(file, chunk);
  hid_t space = H5Screate_simple(DIMENSIONS, size, NULL), layout = H5Pcreate(H5P_DATASET_CREATE);
  hdf5_check_or_abort(&report->file, &defining, H5Pset_chunk(layout, DIMENSIONS, chunk));
  report->data = H5Dcreate2(report->file.id, "/data", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, layout,
                            H5P_DEFAULT);
  hdf5_check_or_abort(&report->file, &defining, report->data);
  H5Pclose(layout);
  H5Sclose(space);
}

static bool create(struct report_file *file) {
  if (!prepare(file) || !hdf5_file_create(&file->hdf5->file)) {
    discard(file);
    return false;
  }
  double start = MPI_Wtime();
  write_mapping(file);
  make_data(file);
  file->times->open_s += MPI_Wtime() - start;
  return true;
}

/* The first value of this rank's part of a table that is not as it was written is the fault. */
static void compare_table(struct hdf5_file *file, const struct table *table) {
  size_t bytes = H5Tget_size(table->native);
  char *found = calloc(table->count, bytes);
  hid_t id = H5Dopen2(file->id, table->name, H5P_DEFAULT);
  struct hdf5_piece piece = hdf5_piece_of(1, &table->total, &table->first, &table->count, false);
  bool got =
      found != NULL && hdf5_check(file, id) && hdf5_has_length(file, id, (int64_t)table->total) &&
      hdf5_check(file, H5Dread(id, table->native, piece.memory, piece.file, piece.transfer, found));
  for (size_t i = 0; got && i < table->count && file->fault[0] == '\0'; i++)
    if (memcmp(found + i * bytes, (const char *)table->values + i * bytes, bytes) != 0)
      snprintf(file->fault, sizeof file->fault, "wrong value at %lld of %s (from 0)",
               (long long)(table->first + i), table->name);
  if (found == NULL && file->fault[0] == '\0')
    snprintf(file->fault, sizeof file->fault, "no memory to compare %s", table->name);
  hdf5_piece_close(&piece);
  if (id >= 0)
    H5Dclose(id);
  free(found);
}

static void check_shape(struct report_file *file) {
  struct hdf5_report *report = file->hdf5;
  hsize_t size[H5S_MAX_RANK] = {0};
  hid_t space = H5Dget_space(report->data);
  if (!hdf5_check(&report->file, space))
    return;
  int dimensions = H5Sget_simple_extent_dims(space, size, NULL);
  H5Sclose(space);
  if (dimensions != DIMENSIONS || size[0] != rows_of_report(file) ||
      size[1] != columns_of_report(file))
    snprintf(report->file.fault, sizeof report->file.fault,
             "/data is %lld x %lld, %lld x %lld expected", (long long)size[0], (long long)size[1],
             (long long)rows_of_report(file), (long long)columns_of_report(file));
}

static void give_up(struct report_file *file) {
  if (file->hdf5 == NULL)
    return;
  if (file->hdf5->data >= 0 && !file->hdf5->file.writing)
    H5Dclose(file->hdf5->data);
  hdf5_file_give_up(&file->hdf5->file);
  discard(file);
}

static bool open_data(struct report_file *file) {
  struct hdf5_report *report = file->hdf5;
  double start = MPI_Wtime();
  report->data = H5Dopen2(report->file.id, "/data", H5P_DEFAULT);
  file->times->open_s += MPI_Wtime() - start;
  if (hdf5_check(&report->file, report->data))
    check_shape(file);
  return hdf5_agreed(&report->file, &opening);
}

static bool check_mapping(struct report_file *file) {
  struct table tables[TABLES];
  tables_of(file, tables);
  for (int i = 0; i < TABLES; i++)
    compare_table(&file->hdf5->file, &tables[i]);
  return hdf5_agreed(&file->hdf5->file, &reading);
}

static bool open_existing(struct report_file *file) {
  if (!prepare(file) || !hdf5_file_open(&file->hdf5->file)) {
    discard(file);
    return false;
  }
  if (open_data(file) && (!file->options->verify || check_mapping(file)))
    return true;
  give_up(file);
  return false;
}

static bool write_step(struct report_file *file, int step, const float *values) {
  struct hdf5_report *report = file->hdf5;
  struct hdf5_piece piece = piece_of_step(file, step);
  double start = MPI_Wtime();
  hdf5_check_or_abort(
      &report->file, &writing,
      H5Dwrite(report->data, H5T_NATIVE_FLOAT, piece.memory, piece.file, piece.transfer, values));
  file->times->write_s += MPI_Wtime() - start;
  file->calls++;
  hdf5_piece_close(&piece);
  return true;
}

static bool read_step(struct report_file *file, int step, float *values) {
  struct hdf5_report *report = file->hdf5;
  struct hdf5_piece piece = piece_of_step(file, step);
  double start = MPI_Wtime();
  hdf5_check(&report->file, H5Dread(report->data, H5T_NATIVE_FLOAT, piece.memory, piece.file,
                                    piece.transfer, values));
  file->times->read_s += MPI_Wtime() - start;
  file->calls++;
  hdf5_piece_close(&piece);
  return hdf5_agreed(&report->file, &reading);
}

/* A chunk has no place in the dataset's own order: HDF5 knows where each of them is. */
static void note_chunks(struct report_file *file) {
  struct hdf5_report *report = file->hdf5;
  hsize_t chunk[DIMENSIONS], at[DIMENSIONS], bytes;
  haddr_t begin;
  unsigned filters;
  chunk_of(file, chunk);
  for (at[0] = 0; at[0] < rows_of_report(file); at[0] += chunk[0])
    for (at[1] = 0; at[1] < columns_of_report(file); at[1] += chunk[1]) {
      herr_t code = H5Dget_chunk_info_by_coord(report->data, at, &filters, &begin, &bytes);
      hdf5_check_or_abort(&report->file, &writing, code);
      hdf5_wrote(&report->file, begin, (int64_t)bytes);
    }
}

static bool finish(struct report_file *file, bool sync) {
  note_chunks(file);
  bool whole = hdf5_file_is_whole(&file->hdf5->file);
  if (whole && sync)
    hdf5_file_sync(&file->hdf5->file);
  return whole;
}

static bool close_file(struct report_file *file) {
  struct hdf5_report *report = file->hdf5;
  double start = MPI_Wtime();
  herr_t code = H5Dclose(report->data);
  file->times->close_s += MPI_Wtime() - start;
  report->data = -1;
  if (report->file.writing)
    hdf5_check_or_abort(&report->file, &writing, code);
  bool closed = hdf5_file_close(&report->file);
  if (closed)
    discard(file);
  return closed;
}

const struct backend backend_h5p = {.name = "h5p",
                                    .create = create,
                                    .open = open_existing,
                                    .write = write_step,
                                    .read = read_step,
                                    .finish = finish,
                                    .close = close_file,
                                    .give_up = give_up};

#endif
