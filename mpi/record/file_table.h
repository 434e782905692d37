/* The files that this rank opened.
 *
 * One record for each path and layer, however often it is opened; records are never freed, so a
 * pointer to one stays good. A call on the handle or descriptor of no record costs one look-up. */
#ifndef FOREBAY_MPI_FILE_TABLE_H
#define FOREBAY_MPI_FILE_TABLE_H

#include "record/file_record.h"

enum {
  FILES_MAX = 1024, /* paths opened by MPI-IO on one rank, and as many opened without; of later ones
                       the first are counted, not observed, and the others are OTHER_FILES */
};

/* The record for the name that MPI-IO is about to open, made if needed; NULL beyond FILES_MAX. */
struct file *files_for_name(const char *name);

/* The record for an absolute path that was opened without MPI-IO, made if needed; beyond FILES_MAX
 * that of OTHER_FILES. */
struct file *files_for_path(const char *path, enum layer layer);

/* The same for an open that failed. Programs look for files in many places: such records do not
 * take the room of others. */
struct file *files_for_failure(const char *path, enum layer layer);

/* The record of OTHER_FILES; NULL where memory ends. */
struct file *files_for_others(enum layer layer);

/* A record that is there, or NULL. */
struct file *files_known(const char *path, enum layer layer);

/* The n-th record, NULL behind the last. */
struct file *files_at(int index);

/* Opens that found no room, in files, in handles or in descriptors. */
int64_t files_dropped(void);
void files_note_dropped(void);

/* Opens that are counted in the records of OTHER_FILES for want of room. */
int64_t files_joined(void);

/* Before anything is observed. */
void files_start(void);

/* Observes from now on. The origin is the moment from which others are counted, as the clock reads
 * it and in seconds since 1970; to call this again moves it. */
void files_observe(double origin_s, double started_unix_s);

/* Moves the tallies to a live file if this process is to have one. No file is locked. */
void files_move_to_live(void);

#endif
