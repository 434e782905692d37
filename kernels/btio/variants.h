/* All ways in which BTIO writes, by name and by the deck's number. */
#ifndef BTIO_VARIANTS_H
#define BTIO_VARIANTS_H

#include "dump_file.h"

/* The first ones are in the order of the deck's method numbers. */
enum variant_index {
  FULL,
  INDEPENDENT,
  PNETCDF,
  PNETCDF_NONBLOCKING,
  SIMPLE,
  EPIO,
  FORTRAN,
  VARIANTS
};

extern const char *const variant_names[VARIANTS + 1]; /* ends with NULL */
extern const struct variant *const variants[VARIANTS];

extern const struct variant variant_full, variant_independent;
extern const struct variant variant_pnetcdf, variant_pnetcdf_nonblocking;
extern const struct variant variant_simple, variant_epio, variant_fortran;

#endif
