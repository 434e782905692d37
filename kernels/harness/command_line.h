/* Options from a table, alike in all kernels. */
#ifndef HARNESS_COMMAND_LINE_H
#define HARNESS_COMMAND_LINE_H

#include <stddef.h>

enum option_kind {
  OPTION_SWITCH, /* target: bool, set to true */
  OPTION_COUNT,  /* target: int, `low` or more */
  OPTION_TEXT,   /* target: const char *, not empty */
  OPTION_CHOICE  /* target: int, the index in `choices` */
};

struct option_rule {
  const char *name; /* without the dashes */
  char letter;      /* the short form, or '\0' */
  enum option_kind kind;
  void *target;
  int low;
  const char *const *choices; /* ends with NULL */
};

struct command_line {
  const char *help;
  const struct option_rule *rules;
  size_t rule_count;
  const char **operand;     /* NULL if there is none to give */
  const char *operand_name; /* "deck" */
};

enum options_outcome { OPTIONS_RUN, OPTIONS_HELP_SHOWN, OPTIONS_WRONG };

/* Every rank parses the same arguments; rank 0 prints help (stdout) or the fault (stderr). An
 * option that is not given leaves its target as it is. */
enum options_outcome command_line_parse(const struct command_line *line, int argc, char **argv,
                                        int rank);

#endif
