#define _GNU_SOURCE
#include "record/observation.h"

#include "base/path.h"
#include "base/reentrancy.h"

#include <pthread.h>
#include <unistd.h>

enum { NOT_IN_CHILD, IN_CHILD, RESUMING };

int observation_in_child; /* atomic */
static bool is_observed;  /* atomic */
static double origin_s, started_unix_s;
static pid_t process;
static bool (*resume)(void);

static void in_child(void) { __atomic_store_n(&observation_in_child, IN_CHILD, __ATOMIC_RELAXED); }

void observation_begin(bool (*resume_in_child)(void)) {
  static bool is_hooked;
  if (!is_hooked)
    pthread_atfork(NULL, NULL, in_child);
  is_hooked = true;
  resume = resume_in_child;
  if (observation_is_lost())
    observation_resume();
  process = getpid();
  path_keep_directory_of(process);
}

/* A fork in a signal handler may have interrupted what is resumed here: then it waits. */
bool observation_resume(void) {
  int expected = IN_CHILD;
  if (in_critical_section() ||
      !__atomic_compare_exchange_n(&observation_in_child, &expected, RESUMING, false,
                                   __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    return false;
  critical_section_begin();
  bool is_resumed = resume();
  critical_section_end();
  process = getpid();
  path_keep_directory_of(process);
  if (is_resumed)
    __atomic_store_n(&observation_in_child, NOT_IN_CHILD, __ATOMIC_RELEASE);
  return is_resumed;
}

void observation_set_origin(double from_s, double from_unix_s) {
  origin_s = from_s;
  started_unix_s = from_unix_s;
}

void observation_start(void) { __atomic_store_n(&is_observed, true, __ATOMIC_RELEASE); }

void files_stop(void) { __atomic_store_n(&is_observed, false, __ATOMIC_RELEASE); }

bool files_are_observed(void) {
  return __atomic_load_n(&is_observed, __ATOMIC_ACQUIRE) &&
         (!observation_is_lost() || observation_resume());
}

double files_origin_s(void) { return origin_s; }

double files_started_unix_s(void) { return started_unix_s; }

pid_t files_process(void) { return process; }
