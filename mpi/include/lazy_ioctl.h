/* Lazy I/O of one open file in a namespace that forebay-mount serves. Writes are buffered and reads
 * cached although several nodes have the file open. Other file systems answer ENOTTY.
 *
 * These calls are Forebay's own. CephFS has CEPH_IOC_LAZYIO, but its clients do not invalidate what
 * they cached: a program that used it would read old data after MPI_File_sync.
 *
 * The file is lazy on a node while all its descriptors there have asked for it. A descriptor that
 * has not, on any node, makes it strict when it reads or writes. forebay-mount has the same numbers
 * in crates/forebay-mount/src/ioctl.rs. */
#ifndef FOREBAY_LAZY_IOCTL_H
#define FOREBAY_LAZY_IOCTL_H

#include <sys/ioctl.h>

enum { LAZY_PATH_BYTES = 4096 };

/* The path of the file as the process sees it: what readlink says of /proc/self/fd/N. */
struct lazy_path {
  char path[LAZY_PATH_BYTES];
};

/* Asks for lazy I/O. 1: the file is lazy now; 0: it becomes so when all its descriptors have asked
 * and no other node needs it strict. EOPNOTSUPP: never for this descriptor. */
#define FOREBAY_LAZY_BEGIN _IOW(0xfb, 1, struct lazy_path)
/* Writes back what this node has buffered of the file, and forgets what it has cached. An error of
 * writing back is the result. 1 and 0 as above. */
#define FOREBAY_LAZY_SYNC _IO(0xfb, 2)
/* As sync; then each read and write of the file is strict until the descriptor asks again. */
#define FOREBAY_LAZY_END _IO(0xfb, 3)

#endif
