/* An MPI program that loads its MPI itself, as MPI.jl does: looked_up LIBRARY FILE BYTES writes the
 * file between MPI_Init and MPI_Finalize. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *function(void *library, const char *name) {
  void *found = library != NULL ? dlsym(library, name) : NULL;
  if (found == NULL) {
    fprintf(stderr, "looked_up: %s\n", dlerror());
    exit(1);
  }
  return found;
}

int main(int count, char **words) {
  if (count != 4)
    return 2;
  void *library = dlopen(words[1], RTLD_LAZY | RTLD_LOCAL);
  int (*init)(int *, char ***) = (int (*)(int *, char ***))function(library, "MPI_Init");
  int (*finalize)(void) = (int (*)(void))function(library, "MPI_Finalize");
  size_t length = strtoul(words[3], NULL, 10);
  char *bytes = calloc(length, 1);
  if (bytes == NULL || init(&count, &words) != 0)
    return 1;
  int file = open(words[2], O_WRONLY | O_CREAT, 0666);
  if (write(file, bytes, length) != (ssize_t)length || close(file) != 0)
    return 1;
  return finalize();
}
