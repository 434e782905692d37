/* Assumes that all processes of one host that descend from `forebay` see the same page. Never fails
 * the program: a process without the page keeps its sums to itself. */
#define _GNU_SOURCE
#include "record/elsewhere.h"

#include "base/atomic_file.h"
#include "base/path.h"
#include "base/real_call.h"
#include "base/signals.h"
#include "record/process_identity.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC "fbyelse\n"

enum {
  MAPPED_BYTES_MIN = 64 << 10, /* from which a process that runs maps the page */
  ENDED_BYTES_MIN = 1 << 10,   /* and one that ends */
  SLOTS = 60,
  PARENTS_MAX = 64,
};

/* Of the processes whose number falls on it; a line of the processor's cache. */
struct slot {
  int64_t bytes[DIRECTIONS]; /* atomic */
  int64_t unused[6];
};

struct head {
  char magic[8];
  char host[232];
  int64_t pid; /* of `forebay`, in this namespace */
  uint64_t pid_namespace;
};

struct page {
  struct head head;
  struct slot slots[SLOTS];
};
_Static_assert(sizeof(struct page) == 4096, "crates/forebay-profile/src/elsewhere.rs makes it");

enum { NOT_MAPPED, MAPPING };

bool unrecorded_wanted; /* atomic */
static const char *directory;
static int64_t pending[DIRECTIONS]; /* atomic: as long as no page is mapped */
static int state;                   /* atomic */
static struct slot *slot;           /* atomic */

static void forget_pending(void) {
  for (int direction = 0; direction < DIRECTIONS; direction++)
    __atomic_store_n(&pending[direction], 0, __ATOMIC_RELAXED);
}

void unrecorded_begin(const char *of_record) {
  directory = of_record;
  pthread_atfork(NULL, NULL, forget_pending); /* what the parent has moved stays the parent's */
  __atomic_store_n(&unrecorded_wanted, true, __ATOMIC_RELAXED);
}

static bool is_ours(const struct head *head) {
  char host[sizeof head->host] = "";
  gethostname(host, sizeof host - 1);
  return memcmp(head->magic, MAGIC, sizeof head->magic) == 0 &&
         strncmp(head->host, host, sizeof host) == 0;
}

/* Whether the kernel adds this process's bytes to those of `forebay`, which is on this host. Where
 * that cannot be told, as in a container with its own process numbers, it does. */
static bool is_descendant_of(const struct head *head) {
  int pid = getpid(), parents = 0;
  if (head->pid_namespace != pid_namespace())
    return true;
  for (; pid > 0 && pid != head->pid && parents < PARENTS_MAX; parents++)
    pid = parent_of(pid);
  return pid > 0;
}

static const char *path_of_page(void) {
  static char path[PATH_BYTES_MAX + 16];
  snprintf(path, sizeof path, "%s/elsewhere", directory);
  return path;
}

static struct page *open_page(void) {
  const char *path = path_of_page();
  struct stat status;
  int descriptor = REAL(open)(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0)
    return NULL;
  bool is_whole = fstat(descriptor, &status) == 0 && status.st_size == sizeof(struct page);
  void *mapped = is_whole ? REAL(mmap)(NULL, sizeof(struct page), PROT_READ | PROT_WRITE,
                                       MAP_SHARED, descriptor, 0)
                          : MAP_FAILED;
  REAL(close)(descriptor);
  return mapped != MAP_FAILED ? mapped : NULL;
}

static void move_pending(struct slot *to) {
  for (int direction = 0; direction < DIRECTIONS; direction++) {
    int64_t bytes = __atomic_exchange_n(&pending[direction], 0, __ATOMIC_RELAXED);
    __atomic_add_fetch(&to->bytes[direction], bytes, __ATOMIC_RELAXED);
  }
}

/* Tries it once: a second thread goes on without. */
static void map(void) {
  int before = NOT_MAPPED;
  if (!__atomic_compare_exchange_n(&state, &before, MAPPING, false, __ATOMIC_RELAXED,
                                   __ATOMIC_RELAXED))
    return;
  struct page *page = open_page();
  if (page != NULL && !(is_ours(&page->head) && is_descendant_of(&page->head))) {
    munmap(page, sizeof *page);
    page = NULL;
  }
  if (page == NULL)
    return;
  struct slot *own = &page->slots[getpid() % SLOTS];
  __atomic_store_n(&slot, own, __ATOMIC_RELEASE);
  move_pending(own);
}

void unrecorded_note(enum direction direction, int64_t bytes) {
  struct slot *own = __atomic_load_n(&slot, __ATOMIC_ACQUIRE);
  int64_t *sum = own != NULL ? &own->bytes[direction] : &pending[direction];
  int64_t moved = __atomic_add_fetch(sum, bytes, __ATOMIC_RELAXED);
  bool may_map = own == NULL && __atomic_load_n(&state, __ATOMIC_RELAXED) == NOT_MAPPED;
  if (may_map && llabs(moved) >= MAPPED_BYTES_MIN)
    WITH_ERRNO_KEPT(WITHOUT_SIGNALS(map()));
}

void unrecorded_end(void) {
  struct slot *own = __atomic_load_n(&slot, __ATOMIC_ACQUIRE);
  int64_t waiting = __atomic_load_n(&pending[READING], __ATOMIC_RELAXED) +
                    __atomic_load_n(&pending[WRITING], __ATOMIC_RELAXED);
  if (own != NULL)
    move_pending(own);
  else if (llabs(waiting) >= ENDED_BYTES_MIN && unrecorded_is_counted())
    map();
}

/* The number in a line of /proc/PID/io. */
static int64_t number_of(const char *text, const char *name) {
  const char *at = strstr(text, name);
  return at != NULL ? strtoll(at + strlen(name), NULL, 10) : 0;
}

static bool is_counted_by_forebay(void) {
  struct head head;
  return file_read(path_of_page(), (char *)&head, sizeof head) == sizeof head && is_ours(&head) &&
         is_descendant_of(&head);
}

/* Their bytes are in the kernel's count of this process, and they may have reports of their own. */
static bool has_waited_for_children(void) {
  struct rusage usage;
  return getrusage(RUSAGE_CHILDREN, &usage) != 0 || usage.ru_maxrss > 0;
}

struct process_count unrecorded_count(void) {
  char text[512];
  struct process_count count = {0};
  if (!unrecorded_is_counted())
    return count;
  if (is_counted_by_forebay()) {
    count.source = COUNT_OF_FOREBAY;
    return count;
  }
  ssize_t length =
      has_waited_for_children() ? -1 : file_read("/proc/self/io", text, sizeof text - 1);
  if (length <= 0)
    return count;
  text[length] = '\0';
  count.source = COUNT_OF_PROCESS;
  gethostname(count.host, sizeof count.host - 1);
  count.counted[READING] = number_of(text, "rchar: ");
  count.counted[WRITING] = number_of(text, "wchar: ");
  for (int direction = 0; direction < DIRECTIONS; direction++)
    count.elsewhere[direction] = __atomic_load_n(&pending[direction], __ATOMIC_RELAXED);
  return count;
}
