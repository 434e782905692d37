/* Hints per file, as the environment variable MPICH_MPIIO_HINTS gives them:
 *
 *   PATTERN:KEY=VALUE[:KEY=VALUE...][,PATTERN:KEY=VALUE...]
 *
 * PATTERN is a shell pattern whose * also matches '/'. It is compared with the name that the
 * program opens, with the absolute path, and, if it has no '/', with the last part of the name. The
 * first pattern that matches decides. A VALUE with ':' or ',' in it is enclosed in '#'. As in
 * scripts that are about, blanks, line ends, backslashes before line ends and stray ':' and ',' are
 * skipped. */
#ifndef FOREBAY_MPI_HINTS_H
#define FOREBAY_MPI_HINTS_H

#include <stdbool.h>
#include <stddef.h>

enum { HINT_RULES_MAX = 256, HINTS_PER_RULE_MAX = 64 };

struct hint {
  const char *key, *value;
};

struct hint_rule {
  const char *pattern;
  int count;
  struct hint hints[HINTS_PER_RULE_MAX];
};

struct hints {
  char *text; /* owns all strings */
  int count;
  struct hint_rule *rules;
};

/* Called with each item that cannot be used, and why; the rest is used all the same. */
typedef void hints_complaint(const char *item, const char *why);

void hints_parse(const char *text, hints_complaint *complain, struct hints *hints);

/* The rule for a file, NULL if there is none. */
const struct hint_rule *hints_find(const struct hints *hints, const char *name,
                                   const char *absolute);

#endif
