/* In front of HDF5: says that it is 1.8, of which none is at hand. */
int H5get_libversion(unsigned *major, unsigned *minor, unsigned *release) {
  *major = 1;
  *minor = 8;
  *release = 23;
  return 0;
}
