/* Which processes without MPI have a report in a record. */
#ifndef FOREBAY_MPI_PROCESS_LIMIT_H
#define FOREBAY_MPI_PROCESS_LIMIT_H

#include "record/file_record.h"

#include <stdbool.h>

/* What a process did, file by file. */
struct process_work {
  int64_t calls, bytes;
};

/* Nobody uses the file any more. */
void process_work_add(struct process_work *work, struct file *file);
bool process_work_is_enough(const struct process_work *work);

/* Each process with something to report makes a file of the record one byte longer: its length is
 * their number, reported or not. False: there are enough reports. */
bool process_report_reserve(const char *directory);

#endif
