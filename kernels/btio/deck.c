#include "deck.h"

#include "harness/message.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES_MAX = 2 * DIRECTORY_BYTES_MAX };

/* Values are numbered from 1 over the whole file; beyond 2^53 doubles do not differ. */
static const int64_t values_max = INT64_C(1) << 53;

/* Reads one positive whole number and moves *text behind it. */
static bool next_count(const char **text, int *count) {
  char *end = NULL;
  errno = 0;
  long value = strtol(*text, &end, 10);
  bool ends_a_word = *end == '\0' || isspace((unsigned char)*end);
  if (end == *text || !ends_a_word || errno != 0 || value < 1 || value > INT_MAX)
    return false;
  *text = end;
  *count = (int)value;
  return true;
}

/* Each take_* function stores one line's content, or returns what it expected instead. */
static const char *take_mode(const char *text, struct deck *deck) {
  if (strcmp(text, "w") != 0 && strcmp(text, "r") != 0)
    return "mode 'w' (write) or 'r' (read)";
  deck->mode = text[0];
  return NULL;
}

static const char *take_method(const char *text, struct deck *deck) {
  if (strlen(text) != 1 || text[0] < '0' || text[0] >= '0' + METHODS)
    return "method 0 (MPI collective), 1 (MPI independent), 2 (PnetCDF blocking) or "
           "3 (PnetCDF non-blocking)";
  deck->method = text[0] - '0';
  return NULL;
}

static const char *take_dumps(const char *text, struct deck *deck) {
  bool good = next_count(&text, &deck->dumps) && *text == '\0';
  return good ? NULL : "the number of dumps, a whole number from 1";
}

static const char *take_grid(const char *text, struct deck *deck) {
  bool good = true;
  for (int axis = 0; axis < AXES && good; axis++)
    good = next_count(&text, &deck->grid[axis]);
  return good && *text == '\0' ? NULL : "grid points 'nx ny nz', three whole numbers from 1";
}

static const char *take_directory(const char *text, struct deck *deck) {
  if (strlen(text) >= sizeof deck->directory)
    return "an output directory shorter than 4096 bytes";
  strcpy(deck->directory, text);
  return NULL;
}

static const char *refuse_another_directory(const char *text, struct deck *deck) {
  bool same = strcmp(text, deck->directory) == 0;
  return same ? NULL : "no second output directory (the deck names one already)";
}

typedef const char *line_taker(const char *text, struct deck *deck);

static line_taker *const takers[] = {take_mode, take_method, take_dumps, take_grid, take_directory};
static const char *const names[] = {
    "mode", "method", "number of dumps", "grid points 'nx ny nz'",
    "output directory\nhint: a script may append it: echo \"$DW_JOB_STRIPED\" >> deck; is it set?"};
enum { LINES = sizeof takers / sizeof *takers };

/* Cuts the comment and the surrounding blanks; returns the first byte that stays. */
static char *strip(char *line) {
  line[strcspn(line, "#")] = '\0';
  while (isspace((unsigned char)*line))
    line++;
  size_t length = strlen(line);
  while (length > 0 && isspace((unsigned char)line[length - 1]))
    length--;
  line[length] = '\0';
  return line;
}

static bool fits_a_line(const char *line, FILE *file) {
  return strchr(line, '\n') != NULL || strlen(line) < LINE_BYTES_MAX - 1 || feof(file);
}

/* The found text may be anything, so it is cut short and kept off the terminal's controls. */
static void complain_about_line(const char *path, int number, const char *expected, char *found) {
  for (char *next = found; *next != '\0'; next++)
    if (iscntrl((unsigned char)*next))
      *next = '?';
  complain("%s:%d: expected %s, found '%.200s'", path, number, expected, found);
}

static bool parse(const char *path, FILE *file, struct deck *deck) {
  char line[LINE_BYTES_MAX];
  int number = 0, taken = 0;
  while (fgets(line, sizeof line, file) != NULL) {
    number++;
    if (!fits_a_line(line, file)) {
      complain("%s:%d: line longer than %d bytes", path, number, LINE_BYTES_MAX - 2);
      return false;
    }
    char *text = strip(line);
    if (*text == '\0')
      continue;
    line_taker *take = taken < LINES ? takers[taken] : refuse_another_directory;
    const char *expected = take(text, deck);
    if (expected != NULL) {
      complain_about_line(path, number, expected, text);
      return false;
    }
    taken++;
  }
  if (ferror(file)) {
    complain("%s: %s", path, strerror(errno));
    return false;
  }
  if (taken < LINES)
    complain("%s:%d: the deck ends before the %s", path, number + 1, names[taken]);
  return taken >= LINES;
}

/* Factor by factor, because the product of four ints may not fit 64 bits. */
static bool values_countable(const char *path, const struct deck *deck) {
  int64_t room = values_max / COMPONENTS / deck->dumps;
  for (int axis = 0; axis < AXES; axis++)
    room /= deck->grid[axis];
  if (room == 0)
    complain("%s: %d dumps of %d x %d x %d points hold more than 2^53 values\n"
             "hint: use fewer dumps or a smaller grid",
             path, deck->dumps, deck->grid[0], deck->grid[1], deck->grid[2]);
  return room > 0;
}

static bool read_file(const char *path, struct deck *deck) {
  FILE *file = fopen(path, "r");
  if (file == NULL) {
    complain("%s: %s\nhint: btio --help shows what a deck looks like", path, strerror(errno));
    return false;
  }
  bool good = parse(path, file, deck) && values_countable(path, deck);
  fclose(file);
  return good;
}

bool deck_read(const char *path, MPI_Comm comm, struct deck *deck) {
  int rank, good = 0;
  MPI_Comm_rank(comm, &rank);
  memset(deck, 0, sizeof *deck);
  if (rank == 0)
    good = read_file(path, deck);
  MPI_Bcast(&good, 1, MPI_INT, 0, comm);
  MPI_Bcast(deck, sizeof *deck, MPI_BYTE, 0, comm);
  return good;
}

int64_t deck_grid_points(const struct deck *deck) {
  return (int64_t)deck->grid[0] * deck->grid[1] * deck->grid[2];
}
