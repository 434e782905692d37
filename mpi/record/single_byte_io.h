/* Single characters of streams. They come by the thousand and mostly stay in libc's buffer, so
 * those that follow one another are only numbered, and counted together the next time the file's
 * lock is taken. */
#ifndef FOREBAY_MPI_SINGLE_BYTE_IO_H
#define FOREBAY_MPI_SINGLE_BYTE_IO_H

#include "record/file_record.h"

/* False if the character does not follow the last one, or is to be traced: it is a call to observe.
 */
bool pending_add(struct file *file, enum direction direction, int64_t offset);

/* Counts those that wait. The file is locked, or nobody uses it any more. */
void pending_flush(struct file *file);

#endif
