#include "record/file_record.h"

#include "base/reentrancy.h"
#include "record/single_byte_io.h"

void file_lock(struct file *file) {
  critical_lock(&file->lock);
  file->tally->updates |= 1;
  pending_flush(file);
}

void file_unlock(struct file *file) {
  file->tally->updates = (file->tally->updates | 1) + 1;
  critical_unlock(&file->lock);
}

struct tally tally_of_layer(enum layer layer) {
  return (struct tally){
      .layer = layer, .next_offset = {[READING] = -1, [WRITING] = -1}, .rmw_retry_offset = -1};
}

bool file_has_moved_data(const struct file *file) {
  const struct traffic *reads = &file->tally->counters.traffic[READING];
  const struct traffic *writes = &file->tally->counters.traffic[WRITING];
  return reads->system_calls + reads->system_failures + writes->system_calls +
             writes->system_failures >
         0;
}

bool file_is_empty(const struct file *file) {
  const struct counters *counters = &file->tally->counters;
  return counters->opens == 0 && counters->open_failures == 0 && !file_has_moved_data(file) &&
         (file->layer == LAYER_MPIIO || counters->inherited > 0 ||
          counters_metadata_calls(counters) == 0);
}
