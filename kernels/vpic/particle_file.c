#include "particle_file.h"

#include "harness/message.h"
#include "harness/mpi_file.h"

#include <stdio.h>

static const struct attempt creating = {"H5Fcreate", hint_no_place};
static const struct attempt opening = {
    "H5Fopen", "\nhint: what is read must have been written by an earlier run"};
static const struct attempt writing = {"H5Dwrite", hint_out_of_space};
static const struct attempt reading = {
    "H5Dread", "\nhint: was it written with other options or on another number of ranks?"};
static const struct attempt measuring = {"MPI_File_get_size", hint_out_of_space};
static const struct attempt syncing = {"H5Fflush", hint_out_of_space};
static const struct attempt closing = {"H5Fclose", hint_out_of_space};

static herr_t innermost(unsigned depth, const H5E_error2_t *error, void *client) {
  if (depth == 0)
    snprintf(client, 128, "%s", error->desc != NULL ? error->desc : "failed");
  return 0;
}

/* Whether a call went well. The next call forgets HDF5's own words for it, so they are kept here.
 */
static bool good(struct particle_file *file, int64_t answer) {
  if (answer < 0 && file->fault[0] == '\0') {
    snprintf(file->fault, sizeof file->fault, "failed");
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, innermost, file->fault);
  }
  return answer >= 0;
}

static bool agreed(struct particle_file *file, const struct attempt *attempt) {
  const char *fault = file->fault[0] != '\0' ? file->fault : NULL;
  return attempt_agreed(file->comm, file->path, attempt, fault);
}

/* For what changes the file: a rank that got an error has left HDF5 at another place than the
 * others, who wait for it inside the library (after a collective write, in H5Dwrite itself), for
 * ever. So it cannot ask them; it says what failed and ends the program. */
static void must(struct particle_file *file, const struct attempt *attempt, int64_t answer) {
  if (good(file, answer))
    return;
  int rank;
  MPI_Comm_rank(file->comm, &rank);
  complain("%s on rank %d: %s: %s%s", attempt->name, rank, file->path, file->fault, attempt->hint);
  MPI_Abort(file->comm, STATUS_FAILED);
}

static hid_t parallel_access(const struct particle_file *file) {
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* the messages are ours */
  hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_mpio(access, file->comm, MPI_INFO_NULL);
  return access;
}

bool particle_file_create(struct particle_file *file) {
  if (!mpi_file_delete(file->comm, file->path))
    return false;
  file->writing = true;
  hid_t access = parallel_access(file);
  double start = MPI_Wtime();
  file->id = H5Fcreate(file->path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
  file->times->open_s += MPI_Wtime() - start;
  good(file, file->id);
  H5Pclose(access);
  return agreed(file, &creating);
}

bool particle_file_open(struct particle_file *file) {
  hid_t access = parallel_access(file);
  double start = MPI_Wtime();
  file->id = H5Fopen(file->path, H5F_ACC_RDONLY, access);
  file->times->open_s += MPI_Wtime() - start;
  good(file, file->id);
  H5Pclose(access);
  return agreed(file, &opening);
}

/* What the calls of one step have in common. */
struct selection {
  hid_t memory, file, transfer;
};

static struct selection select_particles(const struct particle_file *file,
                                         const struct particles *particles) {
  hsize_t total = (hsize_t)particles->total, first = (hsize_t)particles->first;
  hsize_t count = (hsize_t)particles->count;
  struct selection selection = {.memory = H5Screate_simple(1, &count, NULL),
                                .file = H5Screate_simple(1, &total, NULL),
                                .transfer = H5Pcreate(H5P_DATASET_XFER)};
  H5Sselect_hyperslab(selection.file, H5S_SELECT_SET, &first, NULL, &count, NULL);
  H5Pset_dxpl_mpio(selection.transfer,
                   file->transfer == COLLECTIVE ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT);
  return selection;
}

static void selection_close(const struct selection *selection) {
  H5Pclose(selection->transfer);
  H5Sclose(selection->file);
  H5Sclose(selection->memory);
}

static hid_t type_of(int dataset) {
  return datasets[dataset].whole ? H5T_NATIVE_INT32 : H5T_NATIVE_FLOAT;
}

static void group_name(int step, char name[32]) { snprintf(name, 32, "Step#%d", step); }

static void write_dataset(struct particle_file *file, hid_t group, int dataset,
                          const struct selection *selection, const struct particles *particles) {
  hid_t id = H5Dcreate2(group, datasets[dataset].name, type_of(dataset), selection->file,
                        H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  must(file, &writing, id);
  must(file, &writing,
       H5Dwrite(id, type_of(dataset), selection->memory, selection->file, selection->transfer,
                particles->values[dataset]));
  file->calls++;
  haddr_t begin = H5Dget_offset(id);
  int64_t end = begin == HADDR_UNDEF ? 0 : (int64_t)begin + particles->total * VALUE_BYTES;
  file->end = end > file->end ? end : file->end;
  must(file, &writing, H5Dclose(id));
}

void particle_file_write(struct particle_file *file, int step, struct particles *particles) {
  struct selection selection = select_particles(file, particles);
  char name[32];
  group_name(step, name);
  double start = MPI_Wtime();
  hid_t group = H5Gcreate2(file->id, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  must(file, &writing, group);
  for (int dataset = 0; dataset < DATASETS; dataset++)
    write_dataset(file, group, dataset, &selection, particles);
  must(file, &writing, H5Gclose(group));
  file->times->write_s += MPI_Wtime() - start;
  selection_close(&selection);
}

static bool has_length(struct particle_file *file, hid_t dataset, int64_t length) {
  hid_t space = H5Dget_space(dataset);
  if (!good(file, space))
    return false;
  hssize_t found = H5Sget_simple_extent_npoints(space);
  H5Sclose(space);
  if (found != length && file->fault[0] == '\0')
    snprintf(file->fault, sizeof file->fault, "a dataset has %lld values, %lld expected",
             (long long)found, (long long)length);
  return found == length;
}

static void read_dataset(struct particle_file *file, hid_t group, int dataset,
                         const struct selection *selection, struct particles *particles) {
  hid_t id = H5Dopen2(group, datasets[dataset].name, H5P_DEFAULT);
  if (!good(file, id))
    return;
  if (has_length(file, id, particles->total))
    good(file, H5Dread(id, type_of(dataset), selection->memory, selection->file,
                       selection->transfer, particles->values[dataset]));
  file->calls++;
  good(file, H5Dclose(id));
}

bool particle_file_read(struct particle_file *file, int step, struct particles *particles) {
  struct selection selection = select_particles(file, particles);
  char name[32];
  group_name(step, name);
  double start = MPI_Wtime();
  hid_t group = H5Gopen2(file->id, name, H5P_DEFAULT);
  if (good(file, group)) {
    for (int dataset = 0; dataset < DATASETS; dataset++)
      read_dataset(file, group, dataset, &selection, particles);
    good(file, H5Gclose(group));
  }
  file->times->read_s += MPI_Wtime() - start;
  selection_close(&selection);
  return agreed(file, &reading);
}

bool particle_file_is_whole(struct particle_file *file) {
  MPI_File *handle = NULL;
  MPI_Offset size = -1;
  char fault[96];
  MPI_Barrier(file->comm); /* other ranks may still be writing */
  if (H5Fget_vfd_handle(file->id, H5P_DEFAULT, (void **)&handle) >= 0 && handle != NULL)
    MPI_File_get_size(*handle, &size);
  snprintf(fault, sizeof fault, "the file holds %lld bytes, at least %lld expected",
           (long long)size, (long long)file->end);
  return attempt_agreed(file->comm, file->path, &measuring, size >= file->end ? NULL : fault);
}

void particle_file_sync(struct particle_file *file) {
  double start = MPI_Wtime();
  herr_t code = H5Fflush(file->id, H5F_SCOPE_GLOBAL);
  file->times->sync_s += MPI_Wtime() - start;
  must(file, &syncing, code);
}

bool particle_file_close(struct particle_file *file) {
  double start = MPI_Wtime();
  herr_t code = H5Fclose(file->id);
  file->times->close_s += MPI_Wtime() - start;
  file->id = -1;
  if (file->writing)
    must(file, &closing, code);
  good(file, code);
  return agreed(file, &closing);
}

void particle_file_give_up(struct particle_file *file) {
  if (file->writing) {
    MPI_Barrier(file->comm); /* whoever has a message has printed it */
    MPI_Abort(file->comm, STATUS_FAILED);
  }
  if (file->id >= 0)
    H5Fclose(file->id);
  file->id = -1;
}
