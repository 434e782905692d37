/* Asks the burst buffer one thing: ask WHAT PATHS... Prints what the function returned, and what it
 * gave. */
#include <datawarp.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static enum dw_stage_type type(const char *name) {
  static const char *const names[] = {"now", "end", "revoke", "activate"};
  for (int i = 0; i < 4; i++)
    if (strcmp(name, names[i]) == 0)
      return (enum dw_stage_type)i;
  fprintf(stderr, "ask: no such type: %s\n", name);
  exit(2);
}

/* NULL can be given as a dash. */
static const char *given(const char *word) { return strcmp(word, "-") == 0 ? NULL : word; }

static int said(int rc, const int counts[4]) {
  printf("%d", rc);
  if (counts != NULL && rc == 0)
    printf(" %d %d %d %d", counts[0], counts[1], counts[2], counts[3]);
  printf("\n");
  return 0;
}

static int failed(const char *root) {
  dw_failed_stage_t *handle;
  char path[4096];
  int length, number, rc = dw_open_failed_stage(root, &handle);
  if (rc != 0)
    return said(rc, NULL);
  if (dw_read_failed_stage(handle, path, 2, &number) > 0)
    return said(-1, NULL); /* it cannot fit */
  while ((length = dw_read_failed_stage(handle, path, sizeof path, &number)) > 0) {
    if ((size_t)length != strlen(path))
      return said(-2, NULL);
    printf("%d %s\n", number, path);
  }
  if (length < 0)
    return said(length, NULL);
  return said(dw_close_failed_stage(handle), NULL);
}

/* As a program does that looks each millisecond whether its file has arrived. */
static int poll_each_millisecond(const char *file) {
  const struct timespec millisecond = {0, 1000000};
  int c[4] = {0, 1, 0, 0}, rc = 0;
  while (rc == 0 && c[1] > 0) {
    nanosleep(&millisecond, NULL);
    rc = dw_query_file_stage(file, &c[0], &c[1], &c[2], &c[3]);
  }
  return said(rc, c);
}

static int stripes(const char *path) {
  int size = -1, width = -1, first = -1, fd = open(path, O_RDONLY);
  int rc = dw_get_stripe_configuration(fd, &size, &width, &first);
  printf("%d %d %d %d\n", rc, size, width, first);
  return 0;
}

static int text(char *got, int code) {
  printf("%d %s\n", code, got == NULL ? "NULL" : got);
  free(got);
  return 0;
}

/* The rest of the words, as a list that ends with NULL. */
static const char **list(char **words) { return (const char **)words; }

static int ask(const char *what, char **w) {
  int c[4] = {-1, -1, -1, -1};
#define IS(name) (strcmp(what, name) == 0)
  if (IS("in"))
    return said(dw_stage_file_in(given(w[0]), given(w[1])), NULL);
  if (IS("in-directory"))
    return said(dw_stage_directory_in(w[0], w[1]), NULL);
  if (IS("in-list"))
    return said(dw_stage_list_in(w[0], list(w + 1)), NULL);
  if (IS("out"))
    return said(dw_stage_file_out(given(w[0]), given(w[1]), type(w[2])), NULL);
  if (IS("out-directory"))
    return said(dw_stage_directory_out(w[0], given(w[1]), type(w[2])), NULL);
  if (IS("out-list"))
    return said(dw_stage_list_out(list(w + 2), given(w[0]), type(w[1])), NULL);
  if (IS("query"))
    return said(dw_query_file_stage(given(w[0]), &c[0], &c[1], &c[2], &c[3]), c);
  if (IS("query-directory"))
    return said(dw_query_directory_stage(w[0], &c[0], &c[1], &c[2], &c[3]), c);
  if (IS("query-list"))
    return said(dw_query_list_stage(list(w), &c[0], &c[1], &c[2], &c[3]), c);
  if (IS("poll"))
    return poll_each_millisecond(w[0]);
  if (IS("wait"))
    return said(dw_wait_file_stage(given(w[0])), NULL);
  if (IS("wait-directory"))
    return said(dw_wait_directory_stage(w[0]), NULL);
  if (IS("wait-list"))
    return said(dw_wait_list_stage(list(w)), NULL);
  if (IS("terminate"))
    return said(dw_terminate_file_stage(given(w[0])), NULL);
  if (IS("terminate-directory"))
    return said(dw_terminate_directory_stage(w[0]), NULL);
  if (IS("terminate-list"))
    return said(dw_terminate_list_stage(list(w)), NULL);
  if (IS("failed"))
    return failed(given(w[0]));
  if (IS("stripes"))
    return stripes(w[0]);
  if (IS("set-stripes"))
    return said(dw_set_stripe_configuration(open(w[0], O_RDONLY), atoi(w[1]), atoi(w[2])), NULL);
  if (IS("mds")) {
    char *path = dw_get_mds_path(given(w[0]), 7);
    return text(path, path == NULL ? -errno : 0);
  }
  if (IS("concurrency"))
    return said(dw_set_stage_concurrency(given(w[0]), (unsigned)atoi(w[1])), NULL);
  if (IS("accounting")) {
    int code = -1;
    char *json = dw_get_accounting_data_json(given(w[0]), &code);
    return text(json, code);
  }
  if (IS("sync"))
    return said(dw_wait_sync_complete(open(w[0], O_RDONLY)), NULL);
  fprintf(stderr, "ask: what is %s?\n", what);
  return 2;
}

int main(int argc, char **argv) { return argc < 2 ? 2 : ask(argv[1], argv + 2); }
