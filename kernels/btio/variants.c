#include "variants.h"

#include <stddef.h>

const char *const variant_names[VARIANTS + 1] = {
    "full", "independent", "pnetcdf", "pnetcdf-nonblocking", "simple", "epio", "fortran", NULL};

const struct variant *const variants[VARIANTS] = {
    &variant_full,   &variant_independent, &variant_pnetcdf, &variant_pnetcdf_nonblocking,
    &variant_simple, &variant_epio,        &variant_fortran};
