#define _GNU_SOURCE
#include "base/library.h"

#include "base/real_call.h"

#include <dlfcn.h>
#include <string.h>

struct library library;

static char version[MPI_MAX_LIBRARY_VERSION_STRING + 1];

const char *library_version(void) { return version; }

/* "MPICH Version:\t4.0.2" as "MPICH Version: 4.0.2". */
static void squeeze(char *text) {
  char *to = text;
  for (const char *from = text; *from != '\0'; from++) {
    bool is_blank = *from == ' ' || *from == '\t';
    if (!is_blank)
      *to++ = *from;
    else if (to > text && to[-1] != ' ')
      *to++ = ' ';
  }
  *to = '\0';
}

static void read_version(void) {
  int length = 0;
  __typeof__(&PMPI_Get_library_version) get_version =
      (__typeof__(&PMPI_Get_library_version))real_find("PMPI_Get_library_version");
  if (get_version == NULL || get_version(version, &length) != MPI_SUCCESS)
    version[0] = '\0';
  version[strcspn(version, ",\n")] = '\0';
  squeeze(version);
}

bool library_is_the_programs(void) { return real_find(FAMILY_MARKER) != NULL; }

#ifdef OPEN_MPI
/* A program that is not position independent has its own copy of an object; that one counts. */
static void *object(const char *name) {
  void *found = dlsym(RTLD_DEFAULT, name);
  return found != NULL ? found : real_find(name);
}

static bool bind_objects(void) {
  library.world = (MPI_Comm)object("ompi_mpi_comm_world");
  library.no_comm = (MPI_Comm)object("ompi_mpi_comm_null");
  library.no_info = (MPI_Info)object("ompi_mpi_info_null");
  library.byte = (MPI_Datatype)object("ompi_mpi_byte");
  library.no_type = (MPI_Datatype)object("ompi_mpi_datatype_null");
  return library.world != NULL && library.no_comm != NULL && library.no_info != NULL &&
         library.byte != NULL && library.no_type != NULL;
}
#else
static bool bind_objects(void) {
  library.world = MPI_COMM_WORLD;
  library.no_comm = MPI_COMM_NULL;
  library.no_info = MPI_INFO_NULL;
  library.byte = MPI_BYTE;
  library.no_type = MPI_DATATYPE_NULL;
  return true;
}
#endif

bool library_bind(void) {
  read_version();
  bool complete = bind_objects();
#define FIND(name)                                                                                 \
  library.name = (__typeof__(library.name))real_find("PMPI_" #name);                               \
  complete = complete && library.name != NULL;
  LIBRARY_FUNCTIONS(FIND)
#undef FIND
  return complete;
}
