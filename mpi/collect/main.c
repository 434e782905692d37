/* forebay-collect DIR: makes reports of the live files that dead programs have left in a record, as
 * these programs would have made themselves, and removes the files. Programs that still run are
 * left alone. Assumes that nothing else writes the record's reports of these programs. */
#define _GNU_SOURCE
#include "base/atomic_file.h"
#include "base/json.h"
#include "base/message.h"
#include "collect/live_reader.h"
#include "record/observation.h"
#include "report/process_limit.h"
#include "report/report.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
  STEP_BYTES_MAX = 131072, /* of an unfinished one */
  CANDIDATES_MAX = 1 << 20,
  BEGIN_S_MAX = 60,
  EXIT_INCOMPLETE = 1,
  EXIT_USAGE = 2,
};

struct candidate {
  char name[NAME_MAX + 1];
  bool is_alive;
  struct live_head head;
};

/* The files of one program. */
struct program {
  const struct candidate *first;
  size_t count;
  struct text header; /* members of JSON that name it */
  struct job *job;
  struct process_work work;
  double until_s; /* end of the last call that was counted, since the start */
  int ranks_found;
  bool is_torn;
};

static const char *directory;

static void path_in(char path[PATH_MAX], const char *name) {
  snprintf(path, PATH_MAX, "%s/%s", directory, name);
}

static void refuse(const char *name, const char *why) {
  message_print("%s/%s: %s; it is left out", directory, name, why);
}

static double latest(double one, double other) { return one > other ? one : other; }

static double last_moment(const struct moments *moments) {
  double last = latest(moments->opened.last, moments->opened.first);
  for (int direction = 0; direction < DIRECTIONS; direction++)
    last = latest(last, latest(moments->program[direction].last, moments->system[direction].last));
  return last;
}

static bool add_file(struct program *program, const struct candidate *candidate) {
  static struct live_content content;
  static struct tally tally;
  struct file file;
  struct text packed = {0};
  char path[PATH_MAX];
  path_in(path, candidate->name);
  const char *why = live_read(path, &content);
  if (why != NULL) {
    refuse(candidate->name, why);
    return false;
  }
  observation_set_origin(content.head.origin_s, content.head.started_unix_s);
  rank_pack_begin(&packed);
  while (live_next(&content, &file, &tally)) {
    process_work_add(&program->work, &file);
    program->until_s =
        latest(program->until_s, last_moment(&tally.moments) - content.head.origin_s);
    rank_pack_file(&packed, &file);
  }
  rank_pack_end(&packed, content.head.dropped, content.head.joined);
  if (packed.length > 0 && program->job != NULL)
    job_add_rank(program->job, content.head.rank, &packed);
  if (program->header.length == 0 && content.program != NULL)
    text_add_bytes(&program->header, content.program, strlen(content.program));
  program->ranks_found++;
  program->is_torn = program->is_torn || content.is_torn;
  text_clear(&packed);
  live_free(&content);
  return true;
}

static void add_recovered(const struct program *program, struct text *out) {
  open_object(out, "recovered");
  add_integer(out, "ranks", program->ranks_found);
  add_seconds(out, "until_s", program->until_s);
  add_name(out, "torn");
  text_add(out, program->is_torn ? "true}" : "false}");
}

static bool write_report(const struct program *program, const char *name) {
  struct text json = {0};
  char path[PATH_MAX];
  path_in(path, name);
  text_add(&json, "{");
  text_add_bytes(&json, text_of(&program->header), program->header.length);
  add_recovered(program, &json);
  report_members_json(program->job, program->until_s, &json);
  text_add(&json, "}\n");
  bool is_written = atomic_file_write(path, &json);
  if (!is_written)
    message_print("%s cannot be written: %s", path, strerror(errno));
  text_clear(&json);
  return is_written;
}

/* What the program itself wrote when it began: all but its empty list of files. */
static bool take_header_of_step(struct program *program, const char *name, bool *is_finished) {
  static char text[STEP_BYTES_MAX];
  static const char tail[] = ",\"files_dropped\":0,\"files\":[]}\n";
  char path[PATH_MAX];
  path_in(path, name);
  ssize_t length = file_read(path, text, sizeof text - 1);
  text[length > 0 ? length : 0] = '\0';
  const size_t tail_bytes = sizeof tail - 1;
  bool is_unfinished = length > (ssize_t)tail_bytes && text[0] == '{' &&
                       memcmp(text + length - tail_bytes, tail, tail_bytes) == 0;
  *is_finished = length > 0 && !is_unfinished;
  if (is_unfinished)
    text_add_bytes(&program->header, text + 1, (size_t)length - tail_bytes - 1);
  return is_unfinished;
}

static bool add_files(struct program *program) {
  bool is_any = false;
  for (size_t i = 0; i < program->count; i++)
    is_any = add_file(program, &program->first[i]) || is_any;
  return is_any && program->job != NULL;
}

static bool collect_step(struct program *program) {
  char name[NAME_MAX + 1];
  bool is_finished;
  const struct live_head *head = &program->first->head;
  snprintf(name, sizeof name, "step-%s.json", head->step_id);
  take_header_of_step(program, name, &is_finished);
  if (is_finished) /* its rank was killed behind MPI_Finalize */
    return true;
  program->job = job_new(head->ranks);
  return add_files(program) && write_report(program, name);
}

static bool collect_process(struct program *program) {
  char name[NAME_MAX + 1];
  const struct live_head *head = &program->first->head;
  snprintf(name, sizeof name, "process-%lld-%d.json", (long long)(head->started_unix_s * 1e3),
           head->pid);
  program->job = job_new(1);
  if (!add_files(program))
    return false;
  return !process_work_is_enough(&program->work) || !process_report_reserve(directory) ||
         write_report(program, name);
}

/* An MPI program is left alone as long as one of its ranks runs. */
static bool collect(const struct candidate *first, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (first[i].is_alive)
      return true;
  struct program program = {.first = first, .count = count};
  bool is_step = first->head.ranks > 0;
  bool is_done = is_step ? collect_step(&program) : collect_process(&program);
  for (size_t i = 0; is_done && i < count; i++) {
    char path[PATH_MAX];
    path_in(path, first[i].name);
    unlink(path);
  }
  text_clear(&program.header);
  return is_done;
}

static bool is_same_program(const struct candidate *one, const struct candidate *other) {
  return one->head.ranks > 0 && one->head.ranks == other->head.ranks &&
         strcmp(one->head.step_id, other->head.step_id) == 0;
}

static int by_program(const void *one, const void *other) {
  const struct candidate *first = one, *second = other;
  int order = strcmp(first->head.step_id, second->head.step_id);
  if (order == 0)
    order = (first->head.ranks > second->head.ranks) - (first->head.ranks < second->head.ranks);
  if (order == 0)
    order = (first->head.rank > second->head.rank) - (first->head.rank < second->head.rank);
  return order != 0 ? order : strcmp(first->name, second->name);
}

/* A process that begins fills its file at once, unless it was killed there. */
static bool is_old(const char *path) {
  struct stat status;
  return lstat(path, &status) == 0 && time(NULL) - status.st_mtime > BEGIN_S_MAX;
}

/* The live files that can be read. */
static size_t find(DIR *names, struct candidate **found, bool *is_complete) {
  size_t count = 0, room = 0;
  for (const struct dirent *entry; (entry = readdir(names)) != NULL && count < CANDIDATES_MAX;) {
    if (strncmp(entry->d_name, LIVE_PREFIX, sizeof LIVE_PREFIX - 1) != 0)
      continue;
    if (count == room) {
      room = room > 0 ? 2 * room : 64;
      struct candidate *more = realloc(*found, room * sizeof *more);
      if (more == NULL)
        abort();
      *found = more;
    }
    struct candidate *candidate = &(*found)[count];
    char path[PATH_MAX];
    path_in(path, entry->d_name);
    snprintf(candidate->name, sizeof candidate->name, "%s", entry->d_name);
    const char *why = live_read_head(path, &candidate->head);
    if (why == live_is_empty) {
      if (is_old(path))
        unlink(path);
    } else if (why != NULL) {
      refuse(entry->d_name, why);
      *is_complete = false;
    }
    candidate->is_alive = why == NULL && live_is_alive(&candidate->head);
    count += why == NULL;
  }
  return count;
}

int main(int count_of_words, char **words) {
  struct candidate *found = NULL;
  bool is_complete = true;
  DIR *names = count_of_words == 2 ? opendir(words[1]) : NULL;
  if (count_of_words != 2 || names == NULL) {
    message_print(count_of_words != 2 ? "usage: forebay-collect DIR" : "%s: %s", words[1],
                  strerror(errno));
    return EXIT_USAGE;
  }
  directory = words[1];
  size_t count = find(names, &found, &is_complete);
  closedir(names);
  qsort(found, count, sizeof *found, by_program);
  for (size_t begin = 0, end; begin < count; begin = end) {
    for (end = begin + 1; end < count && is_same_program(&found[begin], &found[end]);)
      end++;
    is_complete = collect(&found[begin], end - begin) && is_complete;
  }
  free(found);
  return is_complete ? EXIT_SUCCESS : EXIT_INCOMPLETE;
}
