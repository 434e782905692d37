/* What the user asked for, as rank 0 finds it in its environment; all ranks do the same. */
#ifndef FOREBAY_MPI_SETTINGS_H
#define FOREBAY_MPI_SETTINGS_H

#include "settings/hints.h"

#include <limits.h>
#include <stdbool.h>

/* The environment variables. */
#define HINTS_VARIABLE "MPICH_MPIIO_HINTS"
#define DISPLAY_VARIABLE "MPICH_MPIIO_HINTS_DISPLAY"
#define BOX_VARIABLE "MPICH_MPIIO_STATS"
#define JSON_VARIABLE "FOREBAY_MPI_STATS"
#define PROFILE_VARIABLE "FOREBAY_PROFILE"
#define TRACE_VARIABLE "FOREBAY_MPI_TRACE"
#define LAZY_VARIABLE "FOREBAY_MPI_LAZY_IO"

enum { STEP_ID_BYTES_MAX = 48 };

struct settings {
  bool is_active; /* anything is wanted at all; otherwise every call is passed on at once */
  bool wants_box, wants_json, wants_display;
  bool wants_lazy;    /* lazy I/O of the files that hints say nothing about */
  bool wants_profile; /* a step of the record in profile_directory */
  int rank, ranks;
  char json_path[PATH_MAX];         /* of the report; absolute, on rank 0 only */
  char profile_directory[PATH_MAX]; /* absolute; as rank 0 names it, on all ranks */
  char step_id[STEP_ID_BYTES_MAX]; /* MS-PID: start in milliseconds since 1970, process of rank 0 */
  double started_unix_s;           /* rank 0's, on all ranks */
  double start_s;                  /* the same moment on this rank's own clock */
  struct hints hints;
};

extern struct settings settings;

/* After the MPI is initialised; collective over all ranks. With hints, lets Open MPI use ROMIO,
 * which uses them; on all ranks alike, since ranks with different components could not open a
 * file. */
void settings_share(void);

/* The path that the variable names in this rank's environment, absolute: the program may change its
 * directory. False, and "", if it names none, or after a message none that can be used. */
bool settings_path_of(const char *variable, char path[PATH_MAX]);

#endif
