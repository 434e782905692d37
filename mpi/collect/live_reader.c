#define _GNU_SOURCE
#include "collect/live_reader.h"

#include "base/atomic_file.h"
#include "record/process_identity.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RANKS_MAX = 1 << 24 };
/* No sum over RANKS_MAX ranks of such counts overflows. */
static const int64_t count_max = INT64_C(1) << 38 << 10;
static const double seconds_max = 1e10;

static bool is_count(int64_t value) { return value >= 0 && value <= count_max; }

static bool are_counts(const void *values, size_t bytes) {
  const int64_t *at = values;
  for (size_t i = 0; i < bytes / sizeof *at; i++)
    if (!is_count(at[i]))
      return false;
  return true;
}

static bool are_seconds(const void *values, size_t bytes) {
  const double *at = values;
  for (size_t i = 0; i < bytes / sizeof *at; i++)
    if (!(at[i] >= 0 && at[i] <= seconds_max))
      return false;
  return true;
}

static bool is_heat(const struct heat *heat) {
  return heat->doublings >= 0 && heat->doublings <= HEAT_DOUBLINGS_MAX &&
         are_counts(heat->bytes, sizeof heat->bytes);
}

static bool is_place(int64_t offset) { return offset == -1 || is_count(offset); }

static bool is_sound(const struct tally *tally) {
  return tally->layer < LAYERS && are_counts(&tally->counters, sizeof tally->counters) &&
         are_seconds(&tally->seconds, sizeof tally->seconds) &&
         are_seconds(&tally->moments, sizeof tally->moments) &&
         is_place(tally->next_offset[READING]) && is_place(tally->next_offset[WRITING]) &&
         is_count(tally->end_bytes[READING]) && is_count(tally->end_bytes[WRITING]) &&
         is_count(tally->stripe_bytes) && is_count(tally->stripe_count) &&
         is_count(tally->alignment_bytes) && is_count(tally->collective_writes) &&
         are_counts(tally->characters, sizeof tally->characters) &&
         are_counts(tally->asked_sizes, sizeof tally->asked_sizes) &&
         are_counts(tally->system_sizes, sizeof tally->system_sizes) &&
         is_heat(&tally->asked_heat) && is_heat(&tally->system_heat) &&
         memchr(tally->opened_by, '\0', sizeof tally->opened_by) != NULL;
}

/* It becomes part of a file's name. */
static bool is_step_id(const char *id, size_t room) {
  size_t length = strnlen(id, room);
  for (size_t i = 0; i < length; i++)
    if (!isdigit((unsigned char)id[i]) && id[i] != '-')
      return false;
  return length < room;
}

static const char *check_head(const struct live_head *head) {
  if (memcmp(head->magic, LIVE_MAGIC, sizeof head->magic) != 0)
    return "not a live file";
  if (head->format != LIVE_FORMAT || head->head_bytes != sizeof *head ||
      head->tally_bytes != sizeof(struct tally))
    return "a live file of another version of Forebay";
  bool is_mpi = head->ranks > 0;
  if (head->ranks < 0 || head->ranks > RANKS_MAX || head->rank < 0 ||
      head->rank >= (is_mpi ? head->ranks : 1) ||
      !is_step_id(head->step_id, sizeof head->step_id) || is_mpi != (head->step_id[0] != '\0') ||
      memchr(head->host, '\0', sizeof head->host) == NULL || !is_count(head->dropped) ||
      !is_count(head->joined) || head->pid <= 0 ||
      !(head->started_unix_s >= 0 && head->started_unix_s <= seconds_max) ||
      !(head->origin_s >= 0 && head->origin_s <= seconds_max))
    return "a damaged live file";
  return NULL;
}

/* Another user's file would put words into this user's report. */
static const char *open_checked(const char *path, int *descriptor, struct stat *status) {
  *descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (*descriptor < 0)
    return strerror(errno);
  if (fstat(*descriptor, status) != 0)
    return strerror(errno);
  if (!S_ISREG(status->st_mode))
    return "not a regular file";
  if (status->st_uid != geteuid())
    return "the file of another user";
  if (status->st_size > LIVE_BYTES_MAX)
    return "larger than any live file";
  return NULL;
}

static bool read_whole(int descriptor, void *bytes, size_t length) {
  size_t done = 0;
  ssize_t more = 1;
  while (done < length && more > 0) {
    more = pread(descriptor, (char *)bytes + done, length - done, (off_t)done);
    done += more > 0 ? (size_t)more : 0;
  }
  return done == length;
}

const char live_is_empty[] = "its process was killed as it began";

static const char *read_head(int descriptor, struct live_head *head) {
  static const char zeros[sizeof head->magic];
  *head = (struct live_head){0};
  bool is_whole = read_whole(descriptor, head, sizeof *head);
  if (memcmp(head->magic, zeros, sizeof zeros) == 0)
    return live_is_empty;
  return is_whole ? check_head(head) : "a live file that was cut";
}

const char *live_read_head(const char *path, struct live_head *head) {
  int descriptor;
  struct stat status;
  const char *why = open_checked(path, &descriptor, &status);
  if (why == NULL)
    why = read_head(descriptor, head);
  if (descriptor >= 0)
    close(descriptor);
  return why;
}

static const char *read_content(int descriptor, size_t size, struct live_content *content) {
  const char *why = read_head(descriptor, &content->head);
  if (why != NULL)
    return why;
  content->is_torn =
      content->head.used_bytes > size || content->head.used_bytes < sizeof content->head;
  content->length = content->is_torn ? size : (size_t)content->head.used_bytes;
  content->bytes = malloc(content->length);
  if (content->bytes == NULL || !read_whole(descriptor, content->bytes, content->length))
    return "it cannot be read";
  content->next = sizeof content->head;
  return NULL;
}

/* The payload of the next entry and its length; NULL behind the last one. */
static const char *next_entry(struct live_content *content, enum live_kind *kind, size_t *length) {
  struct live_entry entry;
  size_t left = content->length - content->next;
  if (left == 0)
    return NULL;
  if (left >= sizeof entry)
    memcpy(&entry, content->bytes + content->next, sizeof entry);
  if (left < sizeof entry || entry.bytes < sizeof entry || entry.bytes > left ||
      entry.bytes % LIVE_ALIGNMENT_BYTES != 0) {
    content->is_torn = true;
    content->next = content->length;
    return NULL;
  }
  const char *payload = content->bytes + content->next + sizeof entry;
  content->next += entry.bytes;
  *kind = entry.kind;
  *length = entry.bytes - sizeof entry;
  return payload;
}

const char *live_read(const char *path, struct live_content *content) {
  int descriptor;
  struct stat status;
  *content = (struct live_content){0};
  const char *why = open_checked(path, &descriptor, &status);
  if (why == NULL)
    why = read_content(descriptor, (size_t)status.st_size, content);
  if (descriptor >= 0)
    close(descriptor);
  if (why != NULL) {
    live_free(content);
    return why;
  }
  enum live_kind kind;
  size_t length, begin = content->next;
  const char *program = next_entry(content, &kind, &length);
  if (program != NULL && kind == LIVE_PROGRAM && memchr(program, '\0', length) != NULL)
    content->program = program;
  else
    content->next = begin;
  return NULL;
}

bool live_next(struct live_content *content, struct file *file, struct tally *tally) {
  enum live_kind kind;
  size_t length;
  for (const char *at; (at = next_entry(content, &kind, &length)) != NULL;) {
    const char *path = at + sizeof *tally;
    if (kind == LIVE_TALLY && length > sizeof *tally &&
        memchr(path, '\0', length - sizeof *tally) != NULL &&
        (path[0] == '/' || strcmp(path, OTHER_FILES) == 0)) {
      memcpy(tally, at, sizeof *tally);
      if (is_sound(tally)) {
        content->is_torn = content->is_torn || tally->updates % 2 == 1;
        *file = (struct file){.path = (char *)path, .layer = tally->layer, .tally = tally};
        return true;
      }
    }
    content->is_torn = true;
  }
  return false;
}

void live_free(struct live_content *content) {
  free(content->bytes);
  content->bytes = NULL;
}

/* On another host, or in another container, it cannot be seen; its job has ended. */
bool live_is_alive(const struct live_head *head) {
  char host[sizeof head->host] = "";
  gethostname(host, sizeof host - 1);
  return strcmp(host, head->host) == 0 && head->pid_namespace == pid_namespace() &&
         head->start_ticks > 0 && head->start_ticks == start_ticks_of(head->pid);
}
