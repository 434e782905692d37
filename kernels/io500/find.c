/* The ranks walk level by level. If a level has fewer directories than ranks, several ranks read
 * one directory, and each looks at the names that a hash gives it. So the one directory of
 * mdtest-hard keeps all ranks busy. Symbolic links are not followed. */
#define _GNU_SOURCE /* d_type */

#include "find.h"

#include "options.h"
#include "stonewall.h"

#include "harness/attempt.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char timestamp_name[] = "timestampfile", wanted[] = "01";

static const struct attempt starting = {
    "open",
    "\nhint: the directory must have the file timestampfile, made before mdtest-hard-write"};
static const struct attempt walking = {"readdir", ""};

/* Paths below the directory, each with its NUL, one after the other. */
struct paths {
  char *text;
  size_t bytes, room;
};

struct find {
  struct benchmark *benchmark;
  int top;
  struct timespec newer_than;
  struct paths level, below; /* of all ranks; of this rank */
  int64_t seen, found;       /* by this rank */
  char fault[PATH_BYTES_MAX];
};

static bool add_path(struct paths *paths, const char *folder, const char *name) {
  size_t bytes = strlen(folder) + strlen(name) + 2;
  if (paths->bytes + bytes > paths->room) {
    size_t room = 2 * (paths->room + bytes);
    char *text = realloc(paths->text, room);
    if (text == NULL)
      return false;
    paths->text = text;
    paths->room = room;
  }
  snprintf(paths->text + paths->bytes, bytes, "%s/%s", folder, name);
  paths->bytes += bytes;
  return true;
}

static bool is_newer(const struct timespec *time, const struct timespec *than) {
  return time->tv_sec > than->tv_sec ||
         (time->tv_sec == than->tv_sec && time->tv_nsec > than->tv_nsec);
}

/* FNV-1a. */
static unsigned hash_of(const char *name) {
  unsigned hash = 2166136261u;
  for (; *name != '\0'; name++)
    hash = (hash ^ (unsigned char)*name) * 16777619u;
  return hash;
}

static const char *look_at(struct find *find, int directory, const char *folder,
                           const struct dirent *entry) {
  bool may_match = strstr(entry->d_name, wanted) != NULL;
  bool is_directory = entry->d_type == DT_DIR;
  struct stat status;
  find->seen++;
  if (entry->d_type == DT_UNKNOWN || (may_match && entry->d_type == DT_REG)) {
    if (fstatat(directory, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
      return strerror(errno);
    is_directory = S_ISDIR(status.st_mode);
    find->found += may_match && S_ISREG(status.st_mode) && status.st_size == ITEM_BYTES &&
                   is_newer(&status.st_mtim, &find->newer_than);
  }
  if (is_directory && !add_path(&find->below, folder, entry->d_name))
    return "not enough memory";
  return NULL;
}

/* Looks at the names of a directory that are this rank's: its `share` of `shares`. */
static const char *read_directory(struct find *find, const char *path, int share, int shares) {
  int descriptor = openat(find->top, path + 1, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  DIR *stream = descriptor < 0 ? NULL : fdopendir(descriptor);
  const char *fault = stream == NULL ? strerror(errno) : NULL;
  while (fault == NULL) {
    errno = 0;
    const struct dirent *entry = readdir(stream);
    if (entry == NULL) {
      fault = errno == 0 ? NULL : strerror(errno);
      break;
    }
    const char *name = entry->d_name;
    bool is_itself = strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
    if (!is_itself && (shares == 1 || hash_of(name) % (unsigned)shares == (unsigned)share))
      fault = look_at(find, descriptor, path, entry);
  }
  if (stream != NULL)
    closedir(stream);
  else if (descriptor >= 0)
    close(descriptor);
  if (fault == NULL)
    return NULL;
  snprintf(find->fault, sizeof find->fault, "%s: %s", path + 1, fault);
  return find->fault;
}

static const char *read_level(struct find *find) {
  int rank = find->benchmark->rank, ranks = find->benchmark->ranks;
  int directories = 0, index = 0;
  const char *fault = NULL;
  const char *end = find->level.text + find->level.bytes;
  for (const char *path = find->level.text; path < end; path += strlen(path) + 1)
    directories++;
  for (const char *path = find->level.text; path < end && fault == NULL;
       path += strlen(path) + 1, index++) {
    if (directories >= ranks && index % ranks == rank)
      fault = read_directory(find, path, 0, 1);
    else if (directories < ranks && rank % directories == index)
      fault = read_directory(find, path, rank / directories,
                             (ranks - index + directories - 1) / directories);
  }
  return fault;
}

/* All ranks get the directories that any of them saw. False if there is no memory. */
static bool next_level(struct find *find) {
  MPI_Comm comm = find->benchmark->comm;
  int ranks = find->benchmark->ranks, mine = (int)find->below.bytes, total = 0;
  int *counts = malloc(2 * (size_t)ranks * sizeof *counts);
  if (!attempt_memory(comm, counts != NULL, "the search", "run on fewer ranks"))
    return false;
  MPI_Allgather(&mine, 1, MPI_INT, counts, 1, MPI_INT, comm);
  for (int rank = 0; rank < ranks; rank++) {
    counts[ranks + rank] = total;
    total += counts[rank];
  }
  char *text = realloc(find->level.text, (size_t)total + 1);
  bool good = attempt_memory(comm, text != NULL, "the search", "run on fewer ranks of each node");
  if (text != NULL)
    find->level = (struct paths){text, (size_t)total, (size_t)total + 1};
  if (good)
    MPI_Allgatherv(find->below.text, mine, MPI_CHAR, text, counts, counts + ranks, MPI_CHAR, comm);
  free(counts);
  find->below.bytes = 0;
  return good;
}

static bool walk(struct find *find) {
  const char *directory = find->benchmark->options->directory;
  if (!attempt_memory(find->benchmark->comm, add_path(&find->level, "", "."), "the search",
                      "run on fewer ranks of each node"))
    return false;
  while (find->level.bytes > 0) {
    double start = MPI_Wtime();
    const char *fault = read_level(find);
    find->benchmark->report.io.read_s += MPI_Wtime() - start;
    if (!attempt_agreed(find->benchmark->comm, directory, &walking, fault) || !next_level(find))
      return false;
  }
  return true;
}

static bool start(struct find *find) {
  const char *directory = find->benchmark->options->directory;
  struct stat status;
  find->top = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  bool good =
      find->top >= 0 && fstatat(find->top, timestamp_name, &status, AT_SYMLINK_NOFOLLOW) == 0;
  const char *fault = good ? NULL : strerror(errno);
  if (good)
    find->newer_than = status.st_mtim;
  return attempt_agreed(find->benchmark->comm, directory, &starting, fault);
}

bool find_run(struct benchmark *benchmark) {
  struct find find = {.benchmark = benchmark, .top = -1};
  wall_start(benchmark);
  bool good = start(&find) && walk(&find);
  wall_stop(benchmark);
  MPI_Allreduce(&find.seen, &benchmark->total, 1, MPI_INT64_T, MPI_SUM, benchmark->comm);
  MPI_Allreduce(&find.found, &benchmark->found, 1, MPI_INT64_T, MPI_SUM, benchmark->comm);
  benchmark->operations = benchmark->total;
  if (find.top >= 0)
    close(find.top);
  free(find.level.text);
  free(find.below.text);
  return good;
}
