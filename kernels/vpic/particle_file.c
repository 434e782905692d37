#include "particle_file.h"

#include <stdio.h>

static const struct attempt writing = {"H5Dwrite", hint_out_of_space};
static const struct attempt reading = {
    "H5Dread", "\nhint: was it written with other options or on another number of ranks?"};

static struct hdf5_piece piece_of(const struct particle_file *file,
                                  const struct particles *particles) {
  hsize_t total = (hsize_t)particles->total, first = (hsize_t)particles->first;
  hsize_t count = (hsize_t)particles->count;
  return hdf5_piece_of(1, &total, &first, &count, file->transfer == COLLECTIVE);
}

static hid_t type_of(int dataset) {
  return datasets[dataset].whole ? H5T_NATIVE_INT32 : H5T_NATIVE_FLOAT;
}

static void group_name(int step, char name[32]) { snprintf(name, 32, "Step#%d", step); }

static void write_dataset(struct particle_file *file, hid_t group, int dataset,
                          const struct hdf5_piece *piece, const struct particles *particles) {
  struct hdf5_file *hdf5 = &file->hdf5;
  hid_t id = H5Dcreate2(group, datasets[dataset].name, type_of(dataset), piece->file, H5P_DEFAULT,
                        H5P_DEFAULT, H5P_DEFAULT);
  hdf5_check_or_abort(hdf5, &writing, id);
  hdf5_check_or_abort(hdf5, &writing,
                      H5Dwrite(id, type_of(dataset), piece->memory, piece->file, piece->transfer,
                               particles->values[dataset]));
  file->calls++;
  hdf5_wrote(hdf5, H5Dget_offset(id), particles->total * VALUE_BYTES);
  hdf5_check_or_abort(hdf5, &writing, H5Dclose(id));
}

void particle_file_write(struct particle_file *file, int step, struct particles *particles) {
  struct hdf5_piece piece = piece_of(file, particles);
  char name[32];
  group_name(step, name);
  double start = MPI_Wtime();
  hid_t group = H5Gcreate2(file->hdf5.id, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  hdf5_check_or_abort(&file->hdf5, &writing, group);
  for (int dataset = 0; dataset < DATASETS; dataset++)
    write_dataset(file, group, dataset, &piece, particles);
  hdf5_check_or_abort(&file->hdf5, &writing, H5Gclose(group));
  file->hdf5.times->write_s += MPI_Wtime() - start;
  hdf5_piece_close(&piece);
}

static void read_dataset(struct particle_file *file, hid_t group, int dataset,
                         const struct hdf5_piece *piece, struct particles *particles) {
  struct hdf5_file *hdf5 = &file->hdf5;
  hid_t id = H5Dopen2(group, datasets[dataset].name, H5P_DEFAULT);
  if (!hdf5_check(hdf5, id))
    return;
  if (hdf5_has_length(hdf5, id, particles->total))
    hdf5_check(hdf5, H5Dread(id, type_of(dataset), piece->memory, piece->file, piece->transfer,
                             particles->values[dataset]));
  file->calls++;
  hdf5_check(hdf5, H5Dclose(id));
}

bool particle_file_read(struct particle_file *file, int step, struct particles *particles) {
  struct hdf5_piece piece = piece_of(file, particles);
  char name[32];
  group_name(step, name);
  double start = MPI_Wtime();
  hid_t group = H5Gopen2(file->hdf5.id, name, H5P_DEFAULT);
  if (hdf5_check(&file->hdf5, group)) {
    for (int dataset = 0; dataset < DATASETS; dataset++)
      read_dataset(file, group, dataset, &piece, particles);
    hdf5_check(&file->hdf5, H5Gclose(group));
  }
  file->hdf5.times->read_s += MPI_Wtime() - start;
  hdf5_piece_close(&piece);
  return hdf5_agreed(&file->hdf5, &reading);
}
