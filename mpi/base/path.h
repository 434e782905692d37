/* Names of files: their absolute paths, and which of them are recorded. */
#ifndef FOREBAY_MPI_PATH_H
#define FOREBAY_MPI_PATH_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { PATH_BYTES_MAX = PATH_MAX, DESCRIPTOR_LINK_BYTES = 32 };

/* Without a driver's name like "ufs:" that ROMIO takes before the path. */
const char *path_without_prefix(const char *name);

/* The name as seen from the directory (a descriptor or AT_FDCWD). Symbolic links are not resolved.
 * False if it has no such path, or one that is too long. */
bool path_absolute(int directory, const char *name, char path[PATH_BYTES_MAX]);

/* "/proc/self/fd/N", and where it leads: "" if that is not known. Without the functions of printf,
 * which a signal handler must not leave. */
void path_descriptor_link(int descriptor, char link[DESCRIPTOR_LINK_BYTES]);
void path_of_descriptor(int descriptor, char path[PATH_BYTES_MAX]);

/* The current directory is kept from one relative path to the next, so that it takes no system
 * call, until this says that it may have changed. */
void path_forget_directory(void);

/* The process whose current directory is kept: a child of vfork shares memory with it, and has a
 * directory of its own. */
void path_keep_directory_of(pid_t process);

/* Paths of different seeds differ. */
uint64_t path_hash(const char *path, uint64_t seed);

/* Of the system, not of the user's data: programs, libraries, what interpreters and libc read for
 * themselves, devices, settings; and our own. */
bool path_is_excluded(const char *path);

/* Paths below it are foreign from now on: what Forebay itself keeps there. Not copied. */
void path_exclude(const char *directory);

/* True for an address in an MPI, in a library that an MPI uses, or in this library. */
bool path_is_of_mpi(const void *address);

#endif
