/* The program's own system calls, on files that it opened without MPI-IO. */
#define _GNU_SOURCE
#include "issuer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static int issue_open(struct issuer *issuer, const struct traced_call *call,
                      struct descriptors *all) {
  char *path = reader_text(&issuer->reader, call->path);
  char *target = options_target(issuer->rank->options, path);
  int descriptor = all->count < DESCRIPTORS_MAX && target != NULL
                       ? open(target, (int)call->flags, (mode_t)call->permissions)
                       : -1;
  free(path);
  free(target);
  if (descriptor < 0)
    return MPI_ERR_IO;
  all->flags[all->count] = (int)call->flags;
  all->open[all->count++] = descriptor;
  return MPI_SUCCESS;
}

static int issue_close(struct descriptors *all) {
  return close(all->open[--all->count]) == 0 ? MPI_SUCCESS : MPI_ERR_IO;
}

/* The trace does not tell which of several descriptors of one file it was; any that may do it. */
static int descriptor_for(const struct descriptors *all, bool writes) {
  for (int i = all->count; i-- > 0;) {
    int mode = all->flags[i] & O_ACCMODE;
    if (mode == O_RDWR || (mode == O_WRONLY) == writes)
      return all->open[i];
  }
  return all->open[all->count - 1];
}

static int issue_transfer(struct issuer *issuer, const struct traced_call *call,
                          const struct descriptors *all) {
  int descriptor = descriptor_for(all, call->direction == 1);
  size_t length = (size_t)call->count;
  void *bytes = buffers_bytes(&issuer->buffers, call->direction, length);
  if (bytes == NULL)
    return NOT_ISSUED;
  ssize_t moved = call->direction == 1 ? pwrite(descriptor, bytes, length, call->offset)
                                       : pread(descriptor, bytes, length, call->offset);
  issuer->outcome.bytes += moved > 0 ? moved : 0;
  return moved >= 0 ? MPI_SUCCESS : MPI_ERR_IO;
}

/* Locks are left out: what they guarded is other programs' business. */
int issue_system_call(struct issuer *issuer, const struct traced_call *call) {
  enum trace_system what = (enum trace_system)(call->tag - TRACE_SYSTEM);
  struct descriptors *all = &issuer->rank->by_path[call->path];
  if (what == TRACE_SYSTEM_OPEN)
    return issue_open(issuer, call, all);
  if (all->count == 0)
    return NOT_ISSUED; /* of a file of MPI-IO: the MPI will do it again by itself */
  int descriptor = descriptor_for(all, true), code = 0;
  switch (what) {
  case TRACE_SYSTEM_CLOSE:
    return issue_close(all);
  case TRACE_SYSTEM_SEEK:
    code = lseek(descriptor, call->number, SEEK_SET) < 0;
    break;
  case TRACE_SYSTEM_SYNC:
    code = fsync(descriptor);
    break;
  case TRACE_SYSTEM_TRUNCATION:
    code = ftruncate(descriptor, call->number);
    break;
  case TRACE_SYSTEM_READ:
  case TRACE_SYSTEM_WRITE:
    return issue_transfer(issuer, call, all);
  default:
    return NOT_ISSUED;
  }
  return code == 0 ? MPI_SUCCESS : MPI_ERR_IO;
}
