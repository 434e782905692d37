#define _GNU_SOURCE
#include "settings.h"

#include "library.h"
#include "message.h"
#include "trace.h"

#include <stdlib.h>
#include <string.h>

struct settings settings;

/* What rank 0 tells the others. */
struct wishes {
  char box, json, display;
  char romio;      /* the component of Open MPI is not the user's choice */
  int hints_bytes; /* with the final zero; 0: none */
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

static struct wishes wishes_of_this_rank(void) {
  const char *hints = value_of(HINTS_VARIABLE);
  return (struct wishes){
      .box = is_on(BOX_VARIABLE),
      .json = value_of(JSON_VARIABLE) != NULL,
      .display = is_on(DISPLAY_VARIABLE),
      .romio = hints != NULL && value_of("OMPI_MCA_io") == NULL,
      .hints_bytes = hints != NULL ? (int)strlen(hints) + 1 : 0,
  };
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

void settings_share(void) {
  library.Comm_rank(library.world, &settings.rank);
  library.Comm_size(library.world, &settings.ranks);
  struct wishes wishes = wishes_of_this_rank();
  library.Bcast(&wishes, sizeof wishes, library.byte, 0, library.world);
  settings.wants_box = wishes.box;
  settings.wants_json = wishes.json;
  settings.wants_display = wishes.display;
  if (wishes.hints_bytes > 0)
    share_hints(wishes.hints_bytes);
  if (wishes.romio)
    choose_romio();
  settings.is_active = wishes.box || wishes.json || wishes.display || wishes.hints_bytes > 0;
  settings.is_active = trace_share() || settings.is_active;
}
