/* One parallel HDF5 file: its answers, joined as attempt.h describes, and its end. Only where HDF5
 * is there. Functions are collective, except where one says otherwise. */
#ifndef HARNESS_HDF5_FILE_H
#define HARNESS_HDF5_FILE_H

#include "attempt.h"
#include "times.h"

#include <hdf5.h>
#include <stdint.h>

struct hdf5_file {
  MPI_Comm comm;
  const char *path;
  struct io_times *times;
  hid_t id;        /* negative while it is not open */
  bool writing;    /* set by create */
  int64_t end;     /* behind the last byte of data that was written */
  char fault[128]; /* of the first call that failed on this rank, or empty */
};

/* For one rank, without a word: whether a call went well. If not, HDF5's own words for it are kept,
 * because the next call forgets them. */
bool hdf5_check(struct hdf5_file *file, int64_t answer);

/* Whether no rank has a fault. */
bool hdf5_agreed(struct hdf5_file *file, const struct attempt *attempt);

/* For what changes the file, on one rank: a failure ends the program by MPI_Abort, after a message.
 * A rank that got an error has left HDF5 at another place than the others. They wait for it inside
 * the library for ever (after a collective write, in H5Dwrite itself), so it cannot agree with
 * them. */
void hdf5_check_or_abort(struct hdf5_file *file, const struct attempt *attempt, int64_t answer);

/* A new file in place of an old one. */
bool hdf5_file_create(struct hdf5_file *file);
/* An existing file, for reading. */
bool hdf5_file_open(struct hdf5_file *file);

/* The piece of a dataset that this rank moves. */
struct hdf5_piece {
  hid_t memory, file, transfer;
};

/* `count` values along each dimension from `first` on, out of `total`, one after the other in
 * memory. */
struct hdf5_piece hdf5_piece_of(int dimensions, const hsize_t *total, const hsize_t *first,
                                const hsize_t *count, bool collective);
void hdf5_piece_close(const struct hdf5_piece *piece);

/* For one rank: notes that bytes from here on were written. */
void hdf5_wrote(struct hdf5_file *file, haddr_t begin, int64_t bytes);

/* For one rank: whether a dataset has so many values; if not, that is the fault. */
bool hdf5_has_length(struct hdf5_file *file, hid_t dataset, int64_t length);

/* Not timed: whether nothing is missing at the end of the file. Call it before sync and close,
 * which would make a file too short as long as it should be. */
bool hdf5_file_is_whole(struct hdf5_file *file);

/* A failure ends the program, as in hdf5_check_or_abort; so does one of close after writing. */
void hdf5_file_sync(struct hdf5_file *file);
bool hdf5_file_close(struct hdf5_file *file);

/* After a failure and its message: ends the program, with STATUS_FAILED, by MPI_Abort if
 * the file was to be written. HDF5 would write what it still has of a file that takes no more, when
 * it is closed and again when MPI ends, and ranks would wait for each other there for ever. */
void hdf5_file_give_up(struct hdf5_file *file);

#endif
