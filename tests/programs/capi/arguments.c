/* arguments STRIPED PRIVATE FILE: each function with what it must refuse. FILE is outside of the
 * burst buffer. Prints what was not refused as it should be. */
#include <datawarp.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int wrong;

static void expect(const char *call, int rc, int wanted) {
  if (rc == wanted)
    return;
  printf("%s: %d, not %d\n", call, rc, wanted);
  wrong = 1;
}
#define EXPECT(wanted, call) expect(#call, (call), (wanted))

static void of_null(void) {
  int n = 0, *p = &n;
  dw_failed_stage_t *handle = NULL;
  char path[10];
  EXPECT(-EINVAL, dw_stage_file_in(NULL, "/x"));
  EXPECT(-EINVAL, dw_stage_directory_in(NULL, "/x"));
  EXPECT(-EINVAL, dw_stage_list_in("/x", NULL));
  EXPECT(-EINVAL, dw_stage_file_out(NULL, "/x", DW_STAGE_IMMEDIATE));
  EXPECT(-EINVAL, dw_stage_directory_out(NULL, "/x", DW_STAGE_AT_JOB_END));
  EXPECT(-EINVAL, dw_stage_list_out(NULL, "/x", DW_STAGE_IMMEDIATE));
  EXPECT(-EINVAL, dw_query_file_stage(NULL, p, p, p, p));
  EXPECT(-EINVAL, dw_query_directory_stage("/x", p, NULL, p, p));
  EXPECT(-EINVAL, dw_query_list_stage(NULL, p, p, p, p));
  EXPECT(-EINVAL, dw_wait_file_stage(NULL));
  EXPECT(-EINVAL, dw_wait_directory_stage(NULL));
  EXPECT(-EINVAL, dw_wait_list_stage(NULL));
  EXPECT(-EINVAL, dw_terminate_file_stage(NULL));
  EXPECT(-EINVAL, dw_terminate_directory_stage(NULL));
  EXPECT(-EINVAL, dw_terminate_list_stage(NULL));
  EXPECT(-EINVAL, dw_open_failed_stage(NULL, &handle));
  EXPECT(-EINVAL, dw_open_failed_stage("/", NULL));
  EXPECT(-EINVAL, dw_read_failed_stage(NULL, path, sizeof path, p));
  EXPECT(-EINVAL, dw_close_failed_stage(NULL));
  EXPECT(-EINVAL, dw_get_stripe_configuration(0, NULL, p, p));
  EXPECT(-EBADF, dw_get_stripe_configuration(-1, p, p, p));
  EXPECT(-EBADF, dw_set_stripe_configuration(-1, 1, 1));
  EXPECT(-EBADF, dw_wait_sync_complete(-1));
  EXPECT(-EINVAL, dw_set_stage_concurrency(NULL, 1));
  errno = 0;
  EXPECT(EINVAL, dw_get_mds_path(NULL, 0) == NULL ? errno : 0);
  EXPECT(-EINVAL, dw_get_accounting_data_json(NULL, &n) == NULL ? n : 0);
  EXPECT(1, dw_get_accounting_data_json(NULL, NULL) == NULL);
}

static void of_places(const char *striped, const char *private_file, const char *outside) {
  char inside[4096], missing[4096], removed[4096];
  const char *empty[] = {NULL}, *twice[] = {outside, outside, NULL};
  int n, ends[2];
  FILE *file;
  snprintf(inside, sizeof inside, "%s/inside", striped);
  snprintf(removed, sizeof removed, "%s/removed", striped);
  snprintf(missing, sizeof missing, "%s/no/such/directory", striped);
  file = fopen(inside, "w");
  fclose(file);
  /* Not in a striped namespace. */
  EXPECT(-EINVAL, dw_stage_file_out(private_file, outside, DW_STAGE_IMMEDIATE));
  EXPECT(-EINVAL, dw_stage_file_out(outside, "/tmp/x", DW_STAGE_AT_JOB_END));
  EXPECT(-EINVAL, dw_query_file_stage(outside, &n, &n, &n, &n));
  EXPECT(-EINVAL, dw_wait_sync_complete(open(inside, O_RDONLY)));
  EXPECT(0, pipe(ends));
  EXPECT(-EINVAL, dw_get_stripe_configuration(ends[0], &n, &n, &n));
  ends[0] = open(removed, O_RDWR | O_CREAT, 0600);
  unlink(removed);
  EXPECT(-EINVAL, dw_set_stripe_configuration(ends[0], 1 << 20, 1));
  EXPECT(-EINVAL, dw_set_stage_concurrency("/tmp", 1));
  EXPECT(-EINVAL, dw_set_stage_concurrency(striped, 0));
  EXPECT(0, dw_set_stage_concurrency(striped, 64));
  EXPECT(-EINVAL, dw_set_stage_concurrency(striped, 65));
  /* Never asked for. */
  EXPECT(-EINVAL, dw_query_file_stage(inside, &n, &n, &n, &n));
  EXPECT(-EINVAL, dw_query_directory_stage(striped, &n, &n, &n, &n));
  EXPECT(-EINVAL, dw_wait_file_stage(inside));
  EXPECT(-EINVAL, dw_terminate_file_stage(inside));
  EXPECT(-EINVAL, dw_stage_file_out(inside, NULL, DW_REVOKE_STAGE_AT_JOB_END));
  EXPECT(-EINVAL, dw_stage_file_out(inside, NULL, DW_ACTIVATE_DEFERRED_STAGE));
  /* Missing, or of the wrong kind. */
  EXPECT(-ENOENT, dw_query_file_stage(missing, &n, &n, &n, &n));
  EXPECT(-ENOENT, dw_stage_file_out(missing, outside, DW_STAGE_IMMEDIATE));
  EXPECT(-ENOENT, dw_stage_file_out("", outside, DW_STAGE_IMMEDIATE));
  EXPECT(-ENOENT, dw_stage_file_out(inside, "/no/such/directory/file", DW_STAGE_IMMEDIATE));
  EXPECT(-EISDIR, dw_stage_file_out(striped, outside, DW_STAGE_IMMEDIATE));
  EXPECT(-EISDIR, dw_stage_file_out(inside, "/tmp", DW_STAGE_IMMEDIATE));
  EXPECT(-ENOTDIR, dw_stage_directory_out(inside, "/tmp", DW_STAGE_IMMEDIATE));
  EXPECT(-ENOENT, dw_stage_directory_out(striped, "/no/such", DW_STAGE_IMMEDIATE));
  EXPECT(-ENOENT, dw_stage_file_in(inside, "/no/such"));
  EXPECT(-EISDIR, dw_stage_file_in(inside, "/tmp"));
  EXPECT(-EINVAL, dw_stage_file_in(inside, "/dev/null"));
  EXPECT(-EISDIR, dw_stage_file_in(striped, outside));
  EXPECT(-ENOENT, dw_stage_directory_in(missing, "/tmp"));
  EXPECT(-EINVAL, dw_stage_list_in(striped, empty));
  EXPECT(-EEXIST, dw_stage_list_in(striped, twice));
  /* Into the burst buffer itself, where it would be removed with it; no type; no pfs path. */
  EXPECT(-EINVAL, dw_stage_file_out(inside, missing, DW_STAGE_IMMEDIATE));
  EXPECT(-EINVAL, dw_stage_file_out(inside, outside, (enum dw_stage_type)17));
  EXPECT(-EINVAL, dw_stage_file_out(inside, NULL, DW_STAGE_IMMEDIATE));
}

/* A list whose end does not come: after a million paths it is given up. */
static void of_lists(const char *striped) {
  enum { MOST = 1 << 20, MANY = 17 << 10 };
  char name[4000];
  const char **list = malloc((MOST + 1) * sizeof *list);
  int n;
  if (list == NULL)
    exit(2);
  for (int i = 0; i <= MOST; i++)
    list[i] = "/x";
  EXPECT(-E2BIG, dw_stage_list_in(striped, list));
  EXPECT(-E2BIG, dw_stage_list_out(list, "/tmp", DW_STAGE_IMMEDIATE));
  EXPECT(-E2BIG, dw_query_list_stage(list, &n, &n, &n, &n));
  EXPECT(-E2BIG, dw_wait_list_stage(list));
  EXPECT(-E2BIG, dw_terminate_list_stage(list));
  /* Fewer, whose names are longer than a message. */
  memset(name, '.', sizeof name);
  name[0] = '/';
  name[sizeof name - 1] = '\0';
  for (int i = 0; i < MOST; i++)
    list[i] = i < MANY ? name : NULL;
  EXPECT(-E2BIG, dw_wait_list_stage(list));
  free(list);
}

int main(int argc, char **argv) {
  if (argc != 4)
    return 2;
  of_null();
  of_places(argv[1], argv[2], argv[3]);
  of_lists(argv[1]);
  return wrong;
}
