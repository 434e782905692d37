#include "field.h"

#include <stdlib.h>
#include <string.h>

struct dump_view {
  int64_t first_index;  /* file index, from 0, of the dump's first value */
  double *target;       /* of a fill */
  const double *source; /* of a comparison */
  struct mismatches *wrong;
};

struct relaxation {
  double *values;
  ptrdiff_t line, plane; /* distance, in values, of neighbours along y and z */
  double squares;        /* sum of squared changes */
};

static double expected_at(int64_t index) { return (double)(index + 1); }

static int64_t first_index_of(const struct partition *partition, int dump) {
  return (int64_t)dump * partition->grid[0] * partition->grid[1] * partition->grid[2] * COMPONENTS;
}

double *field_allocate(const struct partition *partition) {
  return calloc(partition_padded_points(partition), COMPONENTS * sizeof(double));
}

static void fill_row(const struct row *row, void *context) {
  struct dump_view *view = context;
  int64_t index = view->first_index + row->grid_point * COMPONENTS;
  double *values = view->target + row->buffer_point * COMPONENTS;
  for (int64_t i = 0; i < (int64_t)row->length * COMPONENTS; i++)
    values[i] = expected_at(index + i);
}

void field_fill(const struct partition *partition, int dump, double *values) {
  struct dump_view view = {.first_index = first_index_of(partition, dump), .target = values};
  partition_each_row(partition, fill_row, &view);
}

void field_poison(const struct partition *partition, double *values) {
  memset(values, 0xff, partition_padded_points(partition) * COMPONENTS * sizeof(double));
}

static void compare_row(const struct row *row, void *context) {
  struct dump_view *view = context;
  int64_t index = view->first_index + row->grid_point * COMPONENTS;
  const double *values = view->source + row->buffer_point * COMPONENTS;
  for (int64_t i = 0; i < (int64_t)row->length * COMPONENTS; i++) {
    if (values[i] != expected_at(index + i))
      mismatches_add(view->wrong, index + i, values[i]);
  }
}

void field_compare(const struct partition *partition, int dump, const double *values,
                   struct mismatches *wrong) {
  struct dump_view view = {
      .first_index = first_index_of(partition, dump), .source = values, .wrong = wrong};
  partition_each_row(partition, compare_row, &view);
}

/* Values between 1 and 2, boundary included, stay there under the sweeps: no denormal number slows
 * the arithmetic down, however many sweeps there are. */
void field_prepare_relaxation(const struct partition *partition, double *scratch) {
  size_t values = partition_padded_points(partition) * COMPONENTS;
  for (size_t i = 0; i < values; i++)
    scratch[i] = 1.0 + (double)(i % 7) / 8.0;
}

static void relax_row(const struct row *row, void *context) {
  struct relaxation *sweep = context;
  double *u = sweep->values + row->buffer_point * COMPONENTS;
  ptrdiff_t line = sweep->line, plane = sweep->plane;
  double squares = 0.0;
  for (ptrdiff_t i = 0; i < (ptrdiff_t)row->length * COMPONENTS; i++) {
    double neighbours = u[i - COMPONENTS] + u[i + COMPONENTS] + u[i - line] + u[i + line] +
                        u[i - plane] + u[i + plane];
    double change = 0.8 * (neighbours / 6.0 - u[i]);
    u[i] += change;
    squares += change * change;
  }
  sweep->squares += squares;
}

double field_relax(const struct partition *partition, double *scratch) {
  ptrdiff_t line = (ptrdiff_t)partition->padded[0] * COMPONENTS;
  struct relaxation sweep = {.values = scratch, .line = line, .plane = line * partition->padded[1]};
  partition_each_row(partition, relax_row, &sweep);
  return sweep.squares;
}
