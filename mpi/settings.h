/* What the user asked for, as rank 0 finds it in its environment; all ranks do the same. */
#ifndef FOREBAY_MPI_SETTINGS_H
#define FOREBAY_MPI_SETTINGS_H

#include "hints.h"

#include <stdbool.h>

/* The environment variables. */
#define HINTS_VARIABLE "MPICH_MPIIO_HINTS"
#define DISPLAY_VARIABLE "MPICH_MPIIO_HINTS_DISPLAY"
#define BOX_VARIABLE "MPICH_MPIIO_STATS"
#define JSON_VARIABLE "FOREBAY_MPI_STATS"

struct settings {
  bool is_active; /* anything is wanted at all; otherwise every call is passed on at once */
  bool wants_box, wants_json, wants_display;
  int rank, ranks;
  struct hints hints;
};

extern struct settings settings;

/* After the MPI is initialised; collective over all ranks. With hints, lets Open MPI use ROMIO,
 * which obeys them; on all ranks alike, since ranks with different components could not open a
 * file. */
void settings_share(void);

#endif
