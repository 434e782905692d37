/* The life of the library in one process: it wakes when MPI is initialised and reports when MPI is
 * finalised. Only then are all ranks known to be there. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "base/library.h"
#include "base/message.h"
#include "base/real_call.h"
#include "hooks/hook_slots.h"
#include "hooks/preload_switch.h"
#include "record/bypass.h"
#include "record/file_table.h"
#include "record/live_file.h"
#include "record/observation.h"
#include "report/report.h"
#include "report/step_record.h"
#include "settings/settings.h"
#include "trace/trace.h"

#include <link.h>
#include <string.h>

static bool was_initialised; /* by a call that the hooks saw */
static bool is_foreign;      /* the program's MPI is not of our family */
static bool was_spawned;
static bool is_awake; /* between the end of MPI_Init and the begin of MPI_Finalize */
static int depth;     /* one of the two names of MPI_Init may call the other */

static void before_init(void) {
  was_initialised = true;
  if (depth++ > 0 || library_is_the_programs())
    return;
  is_foreign = true;
  hook_slots_bypass();
  bypass_note(BYPASS_FOREIGN_MPI);
  if (preload_is_silent_rank())
    return;
  message_print(
      "the preloaded library is for " FAMILY ", and the program has loaded another MPI; "
      "its files are not recorded\nhint: %s",
      real_find(OTHER_MARKER) != NULL
          ? "LD_PRELOAD=.../lib/forebay/" SIBLING "/libforebay_mpi.so"
          : "there is none for MPIs other than Open MPI and MPICH, nor for the ABI of MPI 5");
}

static bool is_spawned(void) {
  MPI_Comm parent = library.no_comm;
  return library.Comm_get_parent(&parent) == MPI_SUCCESS && parent != library.no_comm;
}

static void after_init(int code) {
  if (--depth > 0 || is_foreign)
    return;
  hook_slots_fill_gaps();
  if (code != MPI_SUCCESS)
    return;
  if (!library_bind()) {
    message_print("a function of the MPI is missing, so its files are not observed");
    return;
  }
  files_start();
  settings_share();
  settings.is_active = trace_share() || settings.is_active;
  was_spawned = is_spawned(); /* later the program may have left its parent */
  if (was_spawned)            /* its parent writes that file */
    settings.wants_json = false;
  live_set_rank(settings.step_id, settings.rank, settings.ranks);
  step_begin();
  if (settings.is_active)
    files_observe(settings.start_s, settings.started_unix_s);
  else
    files_stop();
  is_awake = settings.is_active;
  trace_start(was_spawned);
}

static void before_finalize(void) {
  if (!is_awake)
    return;
  is_awake = false;
  settings.is_active = false;
  trace_stop(TRACE_FINALIZED);
  if (was_spawned && !settings.wants_profile) {
    if (settings.rank == 0)
      message_print("processes made by MPI_Comm_spawn: their files are not reported");
    return;
  }
  report_make(clock_s() - settings.start_s);
  live_end();
}

static void before_abort(int code) {
  bool is_missed = is_awake && (settings.wants_box || settings.wants_json);
  if (is_awake && settings.wants_profile)
    step_note_abort(code);
  is_awake = false;
  trace_stop(TRACE_ABORTED);
  if (is_missed)
    message_print("MPI_Abort on rank %d: there is no report of this job's files", settings.rank);
}

#define INIT(SYMBOL, PARAMETERS, ARGUMENTS)                                                        \
  int SYMBOL PARAMETERS {                                                                          \
    before_init();                                                                                 \
    int code = REAL(SYMBOL) ARGUMENTS;                                                             \
    after_init(code);                                                                              \
    return code;                                                                                   \
  }

INIT(MPI_Init, (int *argc, char ***argv), (argc, argv))
INIT(PMPI_Init, (int *argc, char ***argv), (argc, argv))
INIT(MPI_Init_thread, (int *argc, char ***argv, int required, int *provided),
     (argc, argv, required, provided))
INIT(PMPI_Init_thread, (int *argc, char ***argv, int required, int *provided),
     (argc, argv, required, provided))

#define FINALIZE(SYMBOL)                                                                           \
  int SYMBOL(void) {                                                                               \
    before_finalize();                                                                             \
    return REAL(SYMBOL)();                                                                         \
  }

FINALIZE(MPI_Finalize)
FINALIZE(PMPI_Finalize)

#define ABORT(SYMBOL)                                                                              \
  int SYMBOL(MPI_Comm comm, int code) {                                                            \
    before_abort(code);                                                                            \
    return REAL(SYMBOL)(comm, code);                                                               \
  }

ABORT(MPI_Abort)
ABORT(PMPI_Abort)

static int is_mpi(struct dl_phdr_info *object, size_t size, void *nothing) {
  (void)size, (void)nothing;
  const char *name = strrchr(object->dlpi_name, '/');
  return name != NULL && strncmp(name, "/libmpi", strlen("/libmpi")) == 0;
}

/* MPI.jl and MPItrampoline look up MPI's functions in the library that they load themselves, and so
 * find none of the hooks. Looks at what is loaded first: to look for a name calls malloc, and reads
 * directories. */
__attribute__((destructor)) static void look_for_mpi(void) {
  int is_initialised = 0;
  if (was_initialised || !preload_is_rank() || !bypass_is_wanted() ||
      dl_iterate_phdr(is_mpi, NULL) == 0)
    return;
  __typeof__(&PMPI_Initialized) ask = (__typeof__(ask))real_find("PMPI_Initialized");
  if (ask != NULL && ask(&is_initialised) == MPI_SUCCESS && is_initialised)
    bypass_note(BYPASS_MPI);
}
