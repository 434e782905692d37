/* A program of an MPI, without ranks: prints how it was started, a line for each word, each
 * variable, and its name in the list of processes. */
#include <mpi.h>
#include <stdio.h>

extern char **environ;

int main(int argc, char **argv) {
  char name[64] = "";
  int is_initialised = 0;
  MPI_Initialized(&is_initialised);
  FILE *file = fopen("/proc/self/comm", "r");
  if (is_initialised || file == NULL || fgets(name, sizeof name, file) == NULL)
    return 1;
  fclose(file);
  printf("%s", name);
  for (int i = 0; i < argc; i++)
    printf("[%s]\n", argv[i]);
  for (char **at = environ; *at != NULL; at++)
    printf("%s\n", *at);
  return 0;
}
