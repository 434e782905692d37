/* FILE [LIBRARY]: calls make_file(FILE) of this program, or of a library that is loaded privately
 * with what it depends on, as Python's extensions are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  void *where = argc > 2 ? dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) : RTLD_DEFAULT;
  int (*make_file)(const char *) = (int (*)(const char *))dlsym(where, "make_file");
  int good = make_file != NULL && make_file(argv[1]);
  if (!good)
    fprintf(stderr, "%s\n", make_file == NULL ? dlerror() : "HDF5 has failed");
  MPI_Finalize();
  return !good;
}
