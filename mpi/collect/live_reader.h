/* Reads a live file. Nothing in it is trusted: it may be torn, of another version, or made by
 * another user. */
#ifndef FOREBAY_MPI_LIVE_READER_H
#define FOREBAY_MPI_LIVE_READER_H

#include "record/file_record.h"
#include "record/live_format.h"

#include <stdbool.h>

struct live_content {
  struct live_head head;
  const char *program; /* members of JSON; NULL: they are missing */
  bool is_torn;        /* entries are missing at its end, or damaged */
  char *bytes;         /* all of the file; to be freed by live_free */
  size_t length, next;
};

/* The reason for which a file without content is refused. */
extern const char live_is_empty[];

/* Its head alone is read and checked. NULL, or why it is refused. */
const char *live_read_head(const char *path, struct live_head *head);

/* The same, and its content. */
const char *live_read(const char *path, struct live_content *content);

/* The next file with its tally, both in the caller's memory; the path is the content's. False
 * behind the last one. */
bool live_next(struct live_content *content, struct file *file, struct tally *tally);
void live_free(struct live_content *content);

/* Its process still runs, as far as this machine knows. */
bool live_is_alive(const struct live_head *head);

#endif
