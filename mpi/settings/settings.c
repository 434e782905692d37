#define _GNU_SOURCE
#include "settings/settings.h"

#include "base/clock.h"
#include "base/library.h"
#include "base/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CLOCKS_APART_S_MAX = 1 };

struct settings settings;

/* What rank 0 sends the others. */
struct requests {
  char box, json, display, lazy;
  char romio;      /* the component of Open MPI is not the user's choice */
  int hints_bytes; /* with the final zero; 0: none */
  double started_unix_s;
  char step_id[STEP_ID_BYTES_MAX];
  char profile_directory[PATH_MAX]; /* "": none */
};

static const char *value_of(const char *variable) {
  const char *value = getenv(variable);
  return value != NULL && value[0] != '\0' ? value : NULL;
}

static bool is_on(const char *variable) {
  const char *value = value_of(variable);
  return value != NULL && strcmp(value, "0") != 0;
}

#ifdef OPEN_MPI

/* Open MPI looks for its components of MPI-IO, and reads these variables, when it opens the first
 * file. By priority rather than by name: where ROMIO is not installed, ompio still takes the files.
 */
static void choose_romio(void) {
  static const char *const priorities[] = {
      "OMPI_MCA_io_romio314_priority",
      "OMPI_MCA_io_romio321_priority",
      "OMPI_MCA_io_romio341_priority",
  };
  for (size_t i = 0; i < sizeof priorities / sizeof *priorities; i++)
    setenv(priorities[i], "100", 1);
  if (settings.rank == 0)
    message_print("Open MPI's ROMIO takes the files of this job, because hints are given and ompio "
                  "ignores most of them\nhint: set OMPI_MCA_io to choose for yourself");
}

#else

static void choose_romio(void) {}

#endif

static void complain(const char *item, const char *why) {
  if (settings.rank == 0)
    message_print("%s: '%s' %s; it is skipped", HINTS_VARIABLE, item, why);
}

bool settings_path_of(const char *variable, char path[PATH_MAX]) {
  const char *value = value_of(variable);
  char directory[PATH_MAX] = "";
  path[0] = '\0';
  if (value == NULL)
    return false;
  bool is_found = value[0] == '/' || getcwd(directory, sizeof directory) != NULL;
  const char *slash = value[0] == '/' ? "" : "/";
  if (is_found && snprintf(path, PATH_MAX, "%s%s%s", directory, slash, value) < PATH_MAX)
    return true;
  path[0] = '\0';
  message_print("%s=%s is too long, or taken from a directory that is gone; it is ignored\n"
                "hint: give an absolute path",
                variable, value);
  return false;
}

static struct requests requests_of_this_rank(void) {
  const char *hints = value_of(HINTS_VARIABLE);
  long long now_us = unix_us();
  struct requests requests = {
      .box = is_on(BOX_VARIABLE),
      .json = settings_path_of(JSON_VARIABLE, settings.json_path),
      .display = is_on(DISPLAY_VARIABLE),
      .lazy = is_on(LAZY_VARIABLE),
      .romio = hints != NULL && value_of("OMPI_MCA_io") == NULL,
      .hints_bytes = hints != NULL ? (int)strlen(hints) + 1 : 0,
      .started_unix_s = 1e-6 * (double)now_us,
  };
  settings_path_of(PROFILE_VARIABLE, requests.profile_directory);
  snprintf(requests.step_id, sizeof requests.step_id, "%lld-%d", now_us / 1000, (int)getpid());
  return requests;
}

static void share_hints(int bytes) {
  char *text = malloc((size_t)bytes);
  if (text == NULL)
    abort(); /* a few bytes at start, and the other ranks wait: nothing sensible is left to do */
  if (settings.rank == 0)
    memcpy(text, value_of(HINTS_VARIABLE), (size_t)bytes);
  library.Bcast(text, bytes, library.byte, 0, library.world);
  hints_parse(text, complain, &settings.hints);
  free(text);
}

/* When rank 0 started, on this rank's clock, so that the moments of all ranks can be compared. The
 * time of day is the same within a node and synchronized between nodes. Where it is not, the end
 * of the broadcast is the next best. */
static double start_here_s(double started_unix_s) {
  double now_s = clock_s(), since_s = 1e-6 * (double)unix_us() - started_unix_s;
  return since_s >= 0 && since_s < CLOCKS_APART_S_MAX ? now_s - since_s : now_s;
}

void settings_share(void) {
  library.Comm_rank(library.world, &settings.rank);
  library.Comm_size(library.world, &settings.ranks);
  struct requests requests = {0};
  if (settings.rank == 0)
    requests = requests_of_this_rank();
  library.Bcast(&requests, sizeof requests, library.byte, 0, library.world);
  settings.start_s = start_here_s(requests.started_unix_s);
  settings.started_unix_s = requests.started_unix_s;
  settings.wants_box = requests.box;
  settings.wants_json = requests.json;
  settings.wants_display = requests.display;
  settings.wants_lazy = requests.lazy;
  settings.wants_profile = requests.profile_directory[0] != '\0';
  memcpy(settings.profile_directory, requests.profile_directory, sizeof requests.profile_directory);
  memcpy(settings.step_id, requests.step_id, sizeof requests.step_id);
  if (requests.hints_bytes > 0)
    share_hints(requests.hints_bytes);
  if (requests.romio && hints_any_for_mpi(&settings.hints))
    choose_romio();
  settings.is_active = requests.box || requests.json || requests.display || requests.lazy ||
                       requests.hints_bytes > 0 || settings.wants_profile;
}
