/* The values: what is dumped, how it is checked, and the arithmetic between two dumps.
 *
 * A value is its own index in the file, counted from 1: exact in a double, different everywhere,
 * never 0, so that a misplaced, missing or damaged byte is seen, a hole included. */
#ifndef BTIO_FIELD_H
#define BTIO_FIELD_H

#include "harness/mismatches.h"
#include "partition.h"

/* A padded array for all cells of this rank, or NULL. */
double *field_allocate(const struct partition *partition);

/* Sets the points of this rank to the values of one dump. */
void field_fill(const struct partition *partition, int dump, double *values);

/* Sets the whole array to a pattern that no dump contains (NaN). */
void field_poison(const struct partition *partition, double *values);

/* Compares the points of this rank with the values of one dump; adds to `wrong`. */
void field_compare(const struct partition *partition, int dump, const double *values,
                   struct mismatches *wrong);

/* Start values for field_relax. */
void field_prepare_relaxation(const struct partition *partition, double *scratch);

/* One 7-point relaxation sweep over all cells of this rank; returns the sum of squared changes. The
 * ghost layers are a fixed boundary: cells exchange nothing. */
double field_relax(const struct partition *partition, double *scratch);

#endif
