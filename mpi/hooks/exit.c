/* Hooks on the calls by which a process ends without the functions that exit would call, as the
 * children of Python's multiprocessing do; and what vfork needs, which is in hook_slots.S. */
#define _GNU_SOURCE
#include "base/real_call.h"
#include "base/signals.h"
#include "report/process_report.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Looked up early: a child of a program with threads cannot do so if its parent was loading a
 * library. */
static void (*next)(int);

pid_t vfork_early(void);

/* Before vfork itself is found. */
pid_t vfork_early(void) { return fork(); }

__attribute__((constructor)) static void find_next(void) {
  extern void *slot_vfork __attribute__((visibility("hidden")));
  next = (void (*)(int))real_find("_exit");
  void *real_vfork = real_find("vfork");
  if (real_vfork != NULL)
    slot_vfork = real_vfork;
}

/* May be called in a signal handler, but not be left by another one. */
static _Noreturn void leave(int status) {
  WITHOUT_SIGNALS(process_report_end());
  if (next != NULL)
    next(status);
  for (;;)
    syscall(SYS_exit_group, status);
}

void _exit(int status) { leave(status); }
void _Exit(int status) { leave(status); }
