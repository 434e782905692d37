#include "section.h"

static __thread volatile int depth __attribute__((tls_model("initial-exec")));

void section_begin(void) { depth++; }

void section_end(void) { depth--; }

void section_lock(pthread_mutex_t *lock) {
  section_begin();
  pthread_mutex_lock(lock);
}

void section_unlock(pthread_mutex_t *lock) {
  pthread_mutex_unlock(lock);
  section_end();
}

bool section_is_here(void) { return depth > 0; }
