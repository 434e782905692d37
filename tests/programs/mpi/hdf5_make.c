/* One dataset of 4 KiB in a new HDF5 file, with the default access property list: HDF5's own, not
 * MPI's, calls move the data. */
#include <hdf5.h>

int make_file(const char *path) {
  static const char values[4096];
  hsize_t count = sizeof values;
  hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  hid_t space = H5Screate_simple(1, &count, NULL);
  hid_t set =
      H5Dcreate2(file, "values", H5T_NATIVE_CHAR, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  int good = H5Dwrite(set, H5T_NATIVE_CHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0;
  H5Dclose(set);
  H5Sclose(space);
  return good && H5Fclose(file) >= 0;
}
