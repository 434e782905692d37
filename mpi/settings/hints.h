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

/* Three keys are ours and reach no MPI. HDF5 aligns what is as long as the threshold or longer, by
 * default half of the alignment, so that small metadata do not each take a block. */
#define HDF5_ALIGNMENT "hdf5_alignment"
#define HDF5_THRESHOLD "hdf5_alignment_threshold"
/* enable or disable: lazy I/O where the file system offers it. */
#define LAZY_IO "lazy_io"

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

struct hint_alignment {
  unsigned long long bytes, threshold_bytes; /* 0 bytes: none is asked for */
};

/* Called with each item that cannot be used, and why; the rest is used all the same. */
typedef void hints_complaint(const char *item, const char *why);

void hints_parse(const char *text, hints_complaint *complain, struct hints *hints);

/* The rule for a file, NULL if there is none. */
const struct hint_rule *hints_find(const struct hints *hints, const char *name,
                                   const char *absolute);

bool hint_is_for_mpi(const char *key);
bool hints_are_for_mpi(const struct hint_rule *rule);

/* At least one hint of any rule is. */
bool hints_any_for_mpi(const struct hints *hints);

/* Whether a file is to be lazy, by the rule if it says so (it may be NULL), else as given. */
bool hints_lazy(const struct hint_rule *rule, bool otherwise);

struct hint_alignment hints_alignment(const struct hint_rule *rule);

#endif
