/* What a system call on the descriptor of a record means, or a call on the stream above it. */
#ifndef FOREBAY_MPI_OBSERVE_H
#define FOREBAY_MPI_OBSERVE_H

#include "record/io_event.h"

#include <errno.h>

void observe_data(struct file *file, struct transfer transfer, double elapsed_s);

enum system_call {
  LOCK,
  SEEK,
  SYNC,
  TRUNCATION,
  STAT,
  MAPPING,
  ALLOCATION,
  /* In the order of enum name_call. Not traced. */
  ACCESS,
  UNLINK,
  MKDIR,
  RMDIR,
  RENAME,
  LINK,
  ATTRIBUTES,
  OPENDIR,
  READDIR,
};

/* argument: as trace_system_other has it. */
void observe_other(struct file *file, enum system_call what, int64_t argument, double elapsed_s);

/* So much of the file was mapped; what is read and written through the mapping is not seen. */
void observe_mapping(struct file *file, int64_t bytes, bool is_written);

/* A call that names a file by its path. It counts for the file if the program has opened it, else
 * for OTHER_FILES; not if it is of the system, or the caller of the MPI. Returns whether it counts.
 */
bool observe_path(int directory, const char *name, enum system_call what, int64_t argument,
                  const void *caller, double elapsed_s);

/* The same for the directory that is open on a descriptor, and is about to be read. */
bool observe_descriptor_of_directory(int descriptor, const void *caller);

/* A call on what OTHER_FILES stands for. */
void observe_other_files(enum system_call what, double elapsed_s);

/* What the kernel could not read is not for us to read. */
static inline bool path_was_readable(const char *path, bool has_failed) {
  return path != NULL && !(has_failed && errno == EFAULT);
}

/* A descriptor appeared. During a call to MPI-IO it is bound to the file of that call if it is that
 * file's; else to the record of its path, if that is a file to record. */
void observe_open(const struct opening *opening);

/* Before the call, since another thread may get the same descriptor as soon as it is free: unbinds
 * it and returns whose it was. */
struct file *observe_close(int descriptor);

/* After it; the file may be NULL. */
void observe_closed(struct file *file, double start_s, double end_s);

/* One descriptor became a duplicate of another. */
void observe_duplicate(int from, int to);

/* The descriptor is used as one of another layer than it was opened for: fdopen, or, as C++ does,
 * write on the descriptor of a stream. The opening moves to that layer unless it has moved data
 * already. Returns the record that it belongs to now. */
struct file *reassign_layer(enum layer layer, int descriptor, struct file *file);

/* Hooks a call and its namesake for large files: off_t and off64_t are one type on the processors
 * of hook_slots.S. */
#define WITH_64(HOOK, NAME, ...) HOOK(NAME, __VA_ARGS__) HOOK(NAME##64, __VA_ARGS__)

#endif
