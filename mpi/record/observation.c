#define _GNU_SOURCE
#include "record/observation.h"

#include <pthread.h>
#include <unistd.h>

bool observation_is_of_child; /* atomic */
static bool is_observed;      /* atomic */
static double origin_s;
static pid_t process;

static void in_child(void) { __atomic_store_n(&observation_is_of_child, true, __ATOMIC_RELAXED); }

void observation_begin(void) {
  static bool is_hooked;
  if (!is_hooked)
    pthread_atfork(NULL, NULL, in_child);
  is_hooked = true;
  observation_is_of_child = false;
  process = getpid();
}

void observation_set_origin(double from_s) { origin_s = from_s; }

void observation_start(void) { __atomic_store_n(&is_observed, true, __ATOMIC_RELEASE); }

void files_stop(void) { __atomic_store_n(&is_observed, false, __ATOMIC_RELEASE); }

bool files_are_observed(void) {
  return __atomic_load_n(&is_observed, __ATOMIC_ACQUIRE) &&
         !__atomic_load_n(&observation_is_of_child, __ATOMIC_RELAXED);
}

double files_origin_s(void) { return origin_s; }

pid_t files_process(void) { return process; }
