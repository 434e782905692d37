/* The function that would have been called without us: that of the next preload, of libc, of the
 * MPI.
 *
 * A hook calls its own name's next one, MPI_File_open as well as PMPI_File_open, so that other
 * tools between us and the MPI see their calls as if we were not there. */
#ifndef FOREBAY_MPI_REAL_CALL_H
#define FOREBAY_MPI_REAL_CALL_H

#include <errno.h>

/* Looks in the objects loaded after ours, then in an MPI that was loaded later and privately, as
 * Python does. NULL if nobody has it. */
void *real_find(const char *name);

/* The same in a call of the program, which a signal handler may leave. */
void *real_find_in_call(const char *name);

/* For a caller that may have been loaded privately with what it depends on, as Python's extensions
 * are: if real_find knows none, the one among the caller's own dependencies. */
void *real_find_for(const void *caller, const char *name);

/* What real_find finds, kept in *cache. Threads that meet here find the same address. */
static inline void *real_cached(void **cache, const char *name) {
  void *known = __atomic_load_n(cache, __ATOMIC_RELAXED);
  if (known == 0) {
    known = real_find_in_call(name);
    __atomic_store_n(cache, known, __ATOMIC_RELAXED);
  }
  return known;
}

/* Runs the statement with errno kept as the call before it has left it. */
#define WITH_ERRNO_KEPT(statement)                                                                 \
  do {                                                                                             \
    int kept = errno;                                                                              \
    statement;                                                                                     \
    errno = kept;                                                                                  \
  } while (0)

/* Typed as the function of that name is declared. Defines one cache per place of use. */
#define REAL(name)                                                                                 \
  __extension__({                                                                                  \
    static void *cache;                                                                            \
    (__typeof__(&name))real_cached(&cache, #name);                                                 \
  })

#endif
