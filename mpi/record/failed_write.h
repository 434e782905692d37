/* Files of which a write failed because of the storage: the first failure of each, appended to the
 * profile at once, since the program may die of it. */
#ifndef FOREBAY_MPI_FAILED_WRITE_H
#define FOREBAY_MPI_FAILED_WRITE_H

#include "record/file_record.h"

/* The directory of the profile, absolute. Before this nothing is noted. */
void failed_write_begin(const char *directory);

/* The call failed with this errno; others than ENOSPC, EDQUOT and EIO are not noted. */
void failed_write_note(struct file *file, const char *call, int error);

/* The same for a descriptor without a record: one that the process was started with. */
void failed_write_note_descriptor(int descriptor, int error);

/* The file was made empty: what failed before is not in it any more. */
void failed_write_forget(const struct file *file);

#endif
