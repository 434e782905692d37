/* Assumes that the record is on a file system with room and shared mappings; the file is allocated
 * before it is written, since a page without room would kill the program. Never fails the program:
 * what cannot be had is done without. */
#define _GNU_SOURCE
#include "record/live_file.h"

#include "base/clock.h"
#include "base/library.h"
#include "base/path.h"
#include "base/real_call.h"
#include "base/reentrancy.h"
#include "base/text.h"
#include "record/process_identity.h"
#include "record/program_info.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
  CHUNK_BYTES = 64 << 10, /* at first; the file doubles whenever it is full */
  NAME_TRIES_MAX = 100,
};

bool live_settled = true; /* atomic */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all that follows */
static const char *directory;
static char path[PATH_BYTES_MAX + 64]; /* "": there is no file */
static char *mapped;                   /* LIVE_BYTES_MAX of addresses */
static size_t room_bytes, used_bytes;  /* of the file */
static struct live_head private_head;
static struct live_head *head = &private_head;

void live_begin(const char *of_record) {
  directory = of_record;
  __atomic_store_n(&live_settled, false, __ATOMIC_RELAXED);
}

static void describe_process(void) {
  head->format = LIVE_FORMAT;
  head->head_bytes = sizeof *head;
  head->tally_bytes = sizeof(struct tally);
  head->pid = getpid();
  head->start_ticks = start_ticks_of(head->pid);
  head->pid_namespace = pid_namespace();
  gethostname(head->host, sizeof head->host - 1);
}

/* Allocates up to `bytes` of the file and maps them behind what is mapped. */
static bool extend(int descriptor, size_t bytes) {
  int error;
  do
    error = REAL(posix_fallocate)(descriptor, (off_t)room_bytes, (off_t)(bytes - room_bytes));
  while (error == EINTR);
  if (error != 0)
    return false;
  void *made = REAL(mmap)(mapped + room_bytes, bytes - room_bytes, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_FIXED, descriptor, (off_t)room_bytes);
  if (made == MAP_FAILED)
    return false;
  room_bytes = bytes;
  return true;
}

/* The program can be started twice in a millisecond, and on two hosts with one process id. */
static int create(void) {
  long long now_ms = unix_us() / 1000;
  int descriptor = -1;
  for (int tries = 0; descriptor < 0 && tries < NAME_TRIES_MAX; tries++) {
    snprintf(path, sizeof path, "%s/" LIVE_PREFIX "%lld-%d", directory, now_ms + tries,
             (int)getpid());
    descriptor =
        REAL(open)(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
    if (descriptor < 0 && errno != EEXIST)
      break;
  }
  return descriptor;
}

static bool grow(void) {
  int descriptor = REAL(open)(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  bool has_grown =
      descriptor >= 0 && room_bytes < LIVE_BYTES_MAX && extend(descriptor, 2 * room_bytes);
  if (descriptor >= 0)
    REAL(close)(descriptor);
  return has_grown;
}

/* Room for an entry, which is not valid before it is published. */
static void *begin_entry(enum live_kind kind, size_t payload_bytes) {
  size_t bytes = sizeof(struct live_entry) + payload_bytes;
  bytes = (bytes + LIVE_ALIGNMENT_BYTES - 1) / LIVE_ALIGNMENT_BYTES * LIVE_ALIGNMENT_BYTES;
  if (path[0] == '\0')
    return NULL;
  while (used_bytes + bytes > room_bytes)
    if (!grow())
      return NULL;
  struct live_entry *entry = (struct live_entry *)(void *)(mapped + used_bytes);
  *entry = (struct live_entry){.kind = kind, .bytes = (uint32_t)bytes};
  return entry + 1;
}

static void publish(const void *payload) {
  const struct live_entry *entry = (const struct live_entry *)payload - 1;
  used_bytes += entry->bytes;
  __atomic_store_n(&head->used_bytes, used_bytes, __ATOMIC_RELEASE);
}

static void add_program(void) {
  struct text json = {.is_mapped = true};
  program_header_json(&(struct program_header){.hosts = 1,
                                               .started_unix_s = head->started_unix_s,
                                               .mpi = head->ranks > 0 ? library_version() : NULL,
                                               .ranks = head->ranks > 0 ? head->ranks : 1,
                                               .wall_s = NAN},
                      &json);
  char *payload = json.is_cut ? NULL : begin_entry(LIVE_PROGRAM, json.length + 1);
  if (payload != NULL) {
    memcpy(payload, json.bytes, json.length + 1);
    publish(payload);
  }
  text_clear(&json);
}

static bool make(void) {
  int descriptor = create();
  if (descriptor < 0) {
    path[0] = '\0';
    return false;
  }
  room_bytes = used_bytes = 0;
  mapped = REAL(mmap)(NULL, LIVE_BYTES_MAX, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                      -1, 0);
  bool is_made = mapped != MAP_FAILED && extend(descriptor, CHUNK_BYTES);
  REAL(close)(descriptor);
  if (!is_made) {
    if (mapped != MAP_FAILED)
      munmap(mapped, LIVE_BYTES_MAX);
    unlink(path);
    path[0] = '\0';
    return false;
  }
  struct live_head *in_file = (struct live_head *)(void *)mapped;
  *in_file = private_head;
  head = in_file;
  used_bytes = sizeof *head;
  describe_process();
  __atomic_store_n(&head->used_bytes, used_bytes, __ATOMIC_RELEASE);
  add_program();
  /* A reader takes a file without it for one that is being filled. */
  __atomic_thread_fence(__ATOMIC_RELEASE);
  memcpy(head->magic, LIVE_MAGIC, sizeof head->magic);
  return true;
}

bool live_make(void) {
  bool is_made = false;
  critical_lock(&lock);
  if (!live_is_settled()) {
    __atomic_store_n(&live_settled, true, __ATOMIC_RELAXED);
    is_made = private_head.ranks <= LIVE_RANKS_MAX && make();
  }
  critical_unlock(&lock);
  return is_made;
}

struct tally *live_add(const struct tally *tally, const char *of_path) {
  size_t length = strlen(of_path) + 1;
  critical_lock(&lock);
  struct tally *copy = begin_entry(LIVE_TALLY, sizeof *tally + length);
  if (copy != NULL) {
    *copy = *tally;
    copy->updates = 0;
    memcpy(copy + 1, of_path, length);
    publish(copy);
  }
  critical_unlock(&lock);
  return copy;
}

void live_set_rank(const char *step_id, int rank, int ranks) {
  critical_lock(&lock);
  head->rank = rank;
  head->ranks = ranks;
  snprintf(head->step_id, sizeof head->step_id, "%s", step_id);
  critical_unlock(&lock);
}

void live_set_origin(double origin_s, double started_unix_s) {
  critical_lock(&lock);
  head->origin_s = origin_s;
  head->started_unix_s = started_unix_s;
  critical_unlock(&lock);
}

void live_set_lost(int64_t dropped, int64_t joined) {
  critical_lock(&lock);
  head->dropped = dropped;
  head->joined = joined;
  critical_unlock(&lock);
}

void live_end(void) {
  critical_lock(&lock);
  __atomic_store_n(&live_settled, true, __ATOMIC_RELAXED);
  if (path[0] != '\0')
    unlink(path);
  path[0] = '\0';
  critical_unlock(&lock);
}

void live_forget(void) {
  pthread_mutex_init(&lock, NULL);
  path[0] = '\0';
  private_head = (struct live_head){0};
  head = &private_head;
  __atomic_store_n(&live_settled, directory == NULL, __ATOMIC_RELAXED);
}
