/* Which descriptors belong to a record. */
#ifndef FOREBAY_MPI_DESCRIPTORS_H
#define FOREBAY_MPI_DESCRIPTORS_H

#include "record/file_record.h"

/* NULL for a descriptor that belongs to no record. */
struct file *descriptors_find(int descriptor);

/* Returns whose it was. With NULL its position is forgotten too. */
struct file *descriptors_set(int descriptor, struct file *file);

/* No descriptor above it belongs to a record. */
int descriptors_highest(void);

#endif
