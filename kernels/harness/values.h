/* The content of the files of the kernels: a value follows from its index, counted from 0 over all
 * that a kernel writes. None is 0, so that a hole is seen. */
#ifndef HARNESS_VALUES_H
#define HARNESS_VALUES_H

#include <stdint.h>

/* Exact in a float. It repeats after a prime number of values, 64 MiB less 12 bytes, so that a
 * block of any ordinary size in a wrong place is seen. */
static inline float value_float(int64_t index) { return (float)(index % 16777213 + 1); }

/* The same with the largest prime that an int holds. */
static inline int32_t value_int(int64_t index) { return (int32_t)(index % 2147483629 + 1); }

#endif
