/*
 * datawarp.h: what a program of a job can ask of its burst buffer while it runs.
 *
 * Forebay's own, with the functions and meanings that are publicly described for DataWarp. Link
 * with -ldatawarp. docs/reference/libdatawarp.md of Forebay says what each function does, and what
 * each error means.
 *
 * - Each int function returns 0, or a negative error number of errno.h; dw_read_failed_stage()
 * differs.
 * - The path in the burst buffer comes first, in both directions. It is in a striped namespace of
 * the job.
 * - A stage is asynchronous: the call returns once it is queued.
 * - Any thread may call any function at any time, so may a child after fork(). Only one thread at
 * a time may use the same dw_failed_stage_t.
 */
#ifndef DATAWARP_H
#define DATAWARP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* When to copy out; or what to do with a request of DW_STAGE_AT_JOB_END. */
enum dw_stage_type {
  DW_STAGE_IMMEDIATE = 0,         /* now */
  DW_STAGE_AT_JOB_END = 1,        /* when the job ends, however it ends */
  DW_REVOKE_STAGE_AT_JOB_END = 2, /* not at the job's end after all */
  DW_ACTIVATE_DEFERRED_STAGE = 3  /* now instead of at the job's end */
};
typedef enum dw_stage_type dw_stage_type;

/* A listing of files that could not be staged. */
typedef struct dw_failed_stage dw_failed_stage_t;

/* ---- Into the burst buffer. Directories that are to receive something must exist. ---- */

int dw_stage_file_in(const char *dw_file_path, const char *pfs_file_path);
int dw_stage_directory_in(const char *dw_directory_path, const char *pfs_directory_path);
/* A list ends with NULL; it holds regular files only, which keep their names. */
int dw_stage_list_in(const char *dw_directory, const char **pfs_list);

/* ---- Out of it. To revoke or activate, the second path may be NULL. ---- */

int dw_stage_file_out(const char *dw_file_path, const char *pfs_file_path, enum dw_stage_type type);
int dw_stage_directory_out(const char *dw_directory_path, const char *pfs_directory_path,
                           enum dw_stage_type type);
int dw_stage_list_out(const char **dw_list, const char *pfs_directory, enum dw_stage_type type);

/* ---- How far it is. Each count is a number of files. ---- */

int dw_query_file_stage(const char *dw_file_path, int *complete, int *pending, int *deferred,
                        int *failed);
int dw_query_directory_stage(const char *dw_directory_path, int *complete, int *pending,
                             int *deferred, int *failed);
int dw_query_list_stage(const char **dw_list, int *complete, int *pending, int *deferred,
                        int *failed);

/* Until nothing of it is in progress, whether it arrived or failed. Signals do not interrupt it. */
int dw_wait_file_stage(const char *dw_file_path);
int dw_wait_directory_stage(const char *dw_directory_path);
int dw_wait_list_stage(const char **dw_list);

/* Ends it and forgets it. When the call returns, nothing is copied any more and no part of a file
 * is left. */
int dw_terminate_file_stage(const char *dw_file_path);
int dw_terminate_directory_stage(const char *dw_directory_path);
int dw_terminate_list_stage(const char **dw_list);

/* ---- What could not be staged: the files below a directory of the namespace. ---- */

int dw_open_failed_stage(const char *dw_instance_path, dw_failed_stage_t **handle);
/* The length of the path, with the reason in *ret_errno; 0 at the end; a negative error number. */
int dw_read_failed_stage(dw_failed_stage_t *handle, char *path, int path_size, int *ret_errno);
int dw_close_failed_stage(dw_failed_stage_t *handle);

/* ---- Where data lie. ---- */

int dw_get_stripe_configuration(int fd, int *stripe_size, int *stripe_width, int *starting_index);
int dw_set_stripe_configuration(int fd, int stripe_size, int stripe_width);
/* A path to build on, of one metadata server for one key. To be freed by the caller; NULL with
 * errno set. */
char *dw_get_mds_path(const char *dw_root, uint64_t key);

/* ---- The instance as a whole. ---- */

int dw_set_stage_concurrency(const char *dw_instance_path, unsigned int concurrent_stages);
/* To be freed by the caller; NULL, and the error as a negative number in *ecode. */
char *dw_get_accounting_data_json(const char *dw_instance_path, int *ecode);
int dw_wait_sync_complete(int fd);

#ifdef __cplusplus
}
#endif

#endif
