/* Waits for a condition that nobody signals, as the mount program of Ceph does: in
 * Client::get_caps, or elsewhere. As Forebay's client does: in a call that it marked, or
 * after it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* The name that the C++ compiler gives to Client::get_caps(). */
int _ZN6Client8get_capsEv(void);
int wait_elsewhere(void);

int _ZN6Client8get_capsEv(void) {
  int failed = 0;
  for (int round = 0; round < 3; round++)
    failed |= pthread_cond_wait(&condition, &mutex);
  return failed;
}

int wait_elsewhere(void) { return pthread_cond_wait(&condition, &mutex); }

static void mark(bool looks_again) {
  void (*set)(bool) = (void (*)(bool))dlsym(RTLD_DEFAULT, "forebay_ceph_look_again");
  set(looks_again);
}

static void *serve(void *where) {
  if (strstr(where, "marked") != NULL)
    mark(true);
  if (strcmp(where, "unmarked") == 0)
    mark(false);
  pthread_mutex_lock(&mutex);
  const int failed = strcmp(where, "get_caps") == 0 ? _ZN6Client8get_capsEv() : wait_elsewhere();
  pthread_mutex_unlock(&mutex);
  printf("went on %d\n", failed);
  return NULL;
}

int main(int count, char **words) {
  pthread_t thread;
  if (count != 2 || pthread_create(&thread, NULL, serve, words[1]) != 0)
    return 2;
  pthread_join(thread, NULL);
  return 0;
}
