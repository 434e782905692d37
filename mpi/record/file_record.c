#include "record/file_record.h"

#include "base/reentrancy.h"
#include "record/single_byte_io.h"

void file_lock(struct file *file) {
  critical_lock(&file->lock);
  pending_flush(file);
}

void file_unlock(struct file *file) { critical_unlock(&file->lock); }

bool file_has_moved_data(const struct file *file) {
  const struct traffic *reads = &file->counters.traffic[READING];
  const struct traffic *writes = &file->counters.traffic[WRITING];
  return reads->system_calls + reads->system_failures + writes->system_calls +
             writes->system_failures >
         0;
}

bool file_is_empty(const struct file *file) {
  return file->layer != LAYER_MPIIO && file->counters.opens == 0 &&
         file->counters.open_failures == 0 && !file_has_moved_data(file);
}
