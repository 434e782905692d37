#include "dump_file.h"

int64_t dump_file_bytes(const struct dump_file *file) {
  const int *grid = file->partition->grid;
  return (int64_t)file->dumps * grid[0] * grid[1] * grid[2] * COMPONENTS * (int64_t)sizeof(double);
}
