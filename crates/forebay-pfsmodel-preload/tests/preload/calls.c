/* One call by name, on pfs/a (emulated, 5000 bytes), pfs/d (a directory) and plain (not emulated).
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utime.h>

#define LENGTH 5000

static char buffer[2 * LENGTH];
static const char *wanted;
static int found;

/* The fortified variants are entered when the compiler knows the room but not the length. */
ssize_t __read_chk(int, void *, size_t, size_t);
ssize_t __pread_chk(int, void *, size_t, off_t, size_t);
int __open_2(const char *, int);
int __openat_2(int, const char *, int);

static void check(int condition) {
  if (!condition) {
    perror(wanted);
    exit(1);
  }
}

static int is(const char *name) {
  int same = strcmp(name, wanted) == 0;
  found |= same;
  return same;
}

static int a(int flags) {
  int fd = open("pfs/a", flags);
  check(fd >= 0);
  return fd;
}

static int plain(int flags) {
  int fd = open("plain", flags);
  check(fd >= 0);
  return fd;
}

static void reads(void) {
  struct iovec two[2] = {{buffer, 1000}, {buffer + 1000, LENGTH}};
  if (is("read"))
    check(read(a(O_RDONLY), buffer, 2 * LENGTH) == LENGTH);
  if (is("read_chk"))
    check(__read_chk(a(O_RDONLY), buffer, 2 * LENGTH, sizeof buffer) == LENGTH);
  if (is("pread"))
    check(pread(a(O_RDONLY), buffer, 2 * LENGTH, 0) == LENGTH);
  if (is("pread64"))
    check(pread64(a(O_RDONLY), buffer, 2 * LENGTH, 0) == LENGTH);
  if (is("pread_chk"))
    check(__pread_chk(a(O_RDONLY), buffer, 2 * LENGTH, 0, sizeof buffer) == LENGTH);
  if (is("readv"))
    check(readv(a(O_RDONLY), two, 2) == LENGTH);
  if (is("preadv"))
    check(preadv(a(O_RDONLY), two, 2, 0) == LENGTH);
  if (is("preadv64"))
    check(preadv64(a(O_RDONLY), two, 2, 0) == LENGTH);
  if (is("preadv2"))
    check(preadv2(a(O_RDONLY), two, 2, 0, 0) == LENGTH);
  if (is("preadv2_here"))
    check(preadv2(a(O_RDONLY), two, 2, -1, 0) == LENGTH);
}

static void writes(void) {
  struct iovec two[2] = {{buffer, 1000}, {buffer + 1000, LENGTH - 1000}};
  if (is("write"))
    check(write(a(O_WRONLY), buffer, LENGTH) == LENGTH);
  if (is("pwrite"))
    check(pwrite(a(O_WRONLY), buffer, LENGTH, 10) == LENGTH);
  if (is("pwrite64"))
    check(pwrite64(a(O_WRONLY), buffer, LENGTH, 10) == LENGTH);
  if (is("writev"))
    check(writev(a(O_WRONLY), two, 2) == LENGTH);
  if (is("pwritev"))
    check(pwritev(a(O_WRONLY), two, 2, 10) == LENGTH);
  if (is("pwritev64"))
    check(pwritev64(a(O_WRONLY), two, 2, 10) == LENGTH);
  if (is("pwritev2"))
    check(pwritev2(a(O_WRONLY), two, 2, 10, 0) == LENGTH);
  if (is("pwritev2_here"))
    check(pwritev2(a(O_WRONLY), two, 2, -1, 0) == LENGTH);
}

static void transfers(void) {
  loff_t from = 0, to = 0;
  int ends[2];
  if (is("copy_file_range_in"))
    check(copy_file_range(plain(O_RDONLY), NULL, a(O_WRONLY), NULL, 1 << 30, 0) == LENGTH);
  if (is("copy_file_range_out"))
    check(copy_file_range(a(O_RDONLY), &from, plain(O_WRONLY), &to, 1 << 30, 0) == LENGTH);
  if (is("copy_file_range_within"))
    check(copy_file_range(a(O_RDONLY), NULL, open("pfs/new", O_CREAT | O_WRONLY, 0600), NULL,
                          1 << 30, 0) == LENGTH);
  if (is("copy_file_range_fails"))
    check(copy_file_range(a(O_RDONLY), NULL, a(O_RDONLY), NULL, LENGTH, 0) < 0);
  if (is("sendfile_in"))
    check(sendfile(a(O_WRONLY), plain(O_RDONLY), NULL, 1 << 20) == LENGTH);
  if (is("sendfile_out"))
    check(sendfile(plain(O_WRONLY), a(O_RDONLY), &from, 1 << 20) == LENGTH);
  if (is("splice_out")) {
    check(pipe(ends) == 0);
    check(splice(a(O_RDONLY), NULL, ends[1], NULL, LENGTH, 0) == LENGTH);
  }
}

static void names(void) {
  struct statx extended;
  struct stat status;
  if (is("stat"))
    check(stat("pfs/a", &status) == 0);
  if (is("lstat"))
    check(lstat("pfs/a", &status) == 0);
  if (is("fstatat"))
    check(fstatat(AT_FDCWD, "pfs/a", &status, 0) == 0);
  if (is("statx"))
    check(statx(AT_FDCWD, "pfs/a", 0, STATX_ALL, &extended) == 0);
  if (is("access"))
    check(access("pfs/a", R_OK) == 0);
  if (is("faccessat"))
    check(faccessat(AT_FDCWD, "pfs/a", R_OK, 0) == 0);
  if (is("missing"))
    check(stat("pfs/missing", &status) < 0);
  if (is("unlink"))
    check(unlink("pfs/a") == 0);
  if (is("unlinkat"))
    check(unlinkat(AT_FDCWD, "pfs/a", 0) == 0);
  if (is("remove"))
    check(remove("pfs/a") == 0);
  if (is("mkdir"))
    check(mkdir("pfs/e", 0700) == 0);
  if (is("mkdirat"))
    check(mkdirat(AT_FDCWD, "pfs/e", 0700) == 0);
  if (is("rmdir"))
    check(rmdir("pfs/d") == 0);
  if (is("rename"))
    check(rename("pfs/a", "pfs/b") == 0);
  if (is("renameat"))
    check(renameat(AT_FDCWD, "pfs/a", AT_FDCWD, "pfs/b") == 0);
  if (is("renameat2"))
    check(renameat2(AT_FDCWD, "pfs/a", AT_FDCWD, "pfs/b", RENAME_NOREPLACE) == 0);
  if (is("rename_out"))
    check(rename("plain", "pfs/b") == 0);
  if (is("link"))
    check(link("pfs/a", "pfs/b") == 0);
  if (is("linkat"))
    check(linkat(AT_FDCWD, "pfs/a", AT_FDCWD, "pfs/b", 0) == 0);
  if (is("symlink"))
    check(symlink("a", "pfs/b") == 0);
  if (is("symlinkat"))
    check(symlinkat("a", AT_FDCWD, "pfs/b") == 0);
  if (is("readlink"))
    check(readlink("pfs/a", buffer, 10) < 0);
  if (is("readlinkat"))
    check(readlinkat(AT_FDCWD, "pfs/a", buffer, 10) < 0);
  if (is("truncate"))
    check(truncate("pfs/a", 10) == 0);
}

static void attributes(void) {
  struct timeval times[2] = {{1, 0}, {1, 0}};
  struct timespec precise[2] = {{1, 0}, {1, 0}};
  struct utimbuf seconds = {1, 1};
  if (is("chmod"))
    check(chmod("pfs/a", 0600) == 0);
  if (is("fchmodat"))
    check(fchmodat(AT_FDCWD, "pfs/a", 0600, 0) == 0);
  if (is("chown"))
    check(chown("pfs/a", getuid(), getgid()) == 0);
  if (is("lchown"))
    check(lchown("pfs/a", getuid(), getgid()) == 0);
  if (is("fchownat"))
    check(fchownat(AT_FDCWD, "pfs/a", getuid(), getgid(), 0) == 0);
  if (is("utime"))
    check(utime("pfs/a", &seconds) == 0);
  if (is("utimes"))
    check(utimes("pfs/a", times) == 0);
  if (is("lutimes"))
    check(lutimes("pfs/a", times) == 0);
  if (is("utimensat"))
    check(utimensat(AT_FDCWD, "pfs/a", precise, 0) == 0);
  if (is("futimesat"))
    check(futimesat(AT_FDCWD, "pfs/a", times) == 0);
}

static void opens(void) {
  char template[] = "pfs/XXXXXX", suffixed[] = "pfs/XXXXXX.c";
  if (is("opendir"))
    check(opendir("pfs/d") != NULL);
  if (is("open"))
    check(open("pfs/a", O_RDONLY) >= 0);
  if (is("open64"))
    check(open64("pfs/new", O_CREAT | O_WRONLY, 0600) >= 0);
  if (is("openat"))
    check(openat(AT_FDCWD, "pfs/new", O_CREAT | O_WRONLY, 0600) >= 0);
  if (is("openat64"))
    check(openat64(AT_FDCWD, "pfs/a", O_RDONLY) >= 0);
  if (is("open_2"))
    check(__open_2("pfs/a", O_RDONLY) >= 0);
  if (is("openat_2"))
    check(__openat_2(AT_FDCWD, "pfs/a", O_RDONLY) >= 0);
  if (is("creat"))
    check(creat("pfs/new", 0600) >= 0);
  if (is("creat64"))
    check(creat64("pfs/new", 0600) >= 0);
  if (is("fopen"))
    check(fopen("pfs/a", "r") != NULL);
  if (is("fopen64"))
    check(fopen64("pfs/new", "w") != NULL);
  if (is("freopen"))
    check(freopen("pfs/a", "r", stdin) != NULL);
  if (is("mkstemp"))
    check(mkstemp(template) >= 0);
  if (is("mkostemp"))
    check(mkostemp(template, O_APPEND) >= 0);
  if (is("mkstemps"))
    check(mkstemps(suffixed, 2) >= 0);
  if (is("mkostemps"))
    check(mkostemps(suffixed, 2, O_APPEND) >= 0);
}

static void open_files(void) {
  struct timeval times[2] = {{1, 0}, {1, 0}};
  struct timespec precise[2] = {{1, 0}, {1, 0}};
  struct statx extended;
  struct stat status;
  if (is("fstat"))
    check(fstat(a(O_RDONLY), &status) == 0);
  if (is("fstatat_empty"))
    check(fstatat(a(O_RDONLY), "", &status, AT_EMPTY_PATH) == 0);
  if (is("statx_empty"))
    check(statx(a(O_RDONLY), "", AT_EMPTY_PATH, STATX_ALL, &extended) == 0);
  if (is("ftruncate"))
    check(ftruncate(a(O_WRONLY), 10) == 0);
  if (is("fallocate"))
    check(fallocate(a(O_WRONLY), 0, 0, 10000) == 0);
  if (is("posix_fallocate"))
    check(posix_fallocate(a(O_WRONLY), 0, 10000) == 0);
  if (is("fchmod"))
    check(fchmod(a(O_RDONLY), 0600) == 0);
  if (is("fchown"))
    check(fchown(a(O_RDONLY), getuid(), getgid()) == 0);
  if (is("futimens"))
    check(futimens(a(O_RDONLY), precise) == 0);
  if (is("futimes"))
    check(futimes(a(O_RDONLY), times) == 0);
}

int main(int count, char **arguments) {
  wanted = count > 1 ? arguments[1] : "";
  reads();
  writes();
  transfers();
  names();
  attributes();
  opens();
  open_files();
  check(found);
  printf("ok\n");
  return 0;
}
