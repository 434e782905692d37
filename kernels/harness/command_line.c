#include "command_line.h"

#include "message.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RULES_MAX = 24, FIRST_LONG = 256 /* beyond every letter */, FAULT_BYTES_MAX = 256 };

static enum options_outcome wrong(int rank, const char *what, const char *argument) {
  complain_once(rank, "%s '%s'\nhint: %s --help lists the options", what, argument, kernel_name);
  return OPTIONS_WRONG;
}

static bool take_count(const struct option_rule *rule, const char *text, char *fault) {
  char *end = NULL;
  errno = 0;
  long value = strtol(text, &end, 10);
  snprintf(fault, FAULT_BYTES_MAX, "--%s needs a whole number, %d or more, not", rule->name,
           rule->low);
  if (end == text || *end != '\0' || errno != 0 || value < rule->low || value > INT_MAX)
    return false;
  *(int *)rule->target = (int)value;
  return true;
}

static bool take_choice(const struct option_rule *rule, const char *text, char *fault) {
  int length = snprintf(fault, FAULT_BYTES_MAX, "--%s needs one of", rule->name);
  for (int choice = 0; rule->choices[choice] != NULL; choice++) {
    if (strcmp(text, rule->choices[choice]) == 0) {
      *(int *)rule->target = choice;
      return true;
    }
    length +=
        snprintf(fault + length, (size_t)(FAULT_BYTES_MAX - length), " %s,", rule->choices[choice]);
  }
  snprintf(fault + length, (size_t)(FAULT_BYTES_MAX - length), " not");
  return false;
}

/* False, with the fault, if the rule does not take this text. */
static bool take(const struct option_rule *rule, const char *text, char *fault) {
  switch (rule->kind) {
  case OPTION_SWITCH:
    *(bool *)rule->target = true;
    return true;
  case OPTION_COUNT:
    return take_count(rule, text, fault);
  case OPTION_CHOICE:
    return take_choice(rule, text, fault);
  case OPTION_TEXT:
    break;
  }
  snprintf(fault, FAULT_BYTES_MAX, "--%s needs a text, not", rule->name);
  *(const char **)rule->target = text;
  return *text != '\0';
}

/* The table in the form that getopt_long wants; a long option returns FIRST_LONG + its index. */
static void translate(const struct command_line *line, struct option *known, char *letters) {
  if (line->rule_count > RULES_MAX)
    abort(); /* a fault of the kernel's table, not of the user */
  *letters++ = ':';
  *letters++ = 'h';
  for (size_t i = 0; i < line->rule_count; i++) {
    const struct option_rule *rule = &line->rules[i];
    int has_argument = rule->kind == OPTION_SWITCH ? no_argument : required_argument;
    known[i] = (struct option){rule->name, has_argument, NULL, FIRST_LONG + (int)i};
    if (rule->letter == '\0')
      continue;
    *letters++ = rule->letter;
    if (has_argument == required_argument)
      *letters++ = ':';
  }
  *letters = '\0';
  known[line->rule_count] = (struct option){"help", no_argument, NULL, 'h'};
}

static const struct option_rule *rule_of(const struct command_line *line, int flag) {
  if (flag >= FIRST_LONG)
    return &line->rules[flag - FIRST_LONG];
  for (size_t i = 0; i < line->rule_count; i++)
    if (line->rules[i].letter == flag)
      return &line->rules[i];
  return NULL;
}

static enum options_outcome parse_flags(const struct command_line *line, int argc, char **argv,
                                        int rank) {
  struct option known[RULES_MAX + 2] = {0};
  char letters[2 * RULES_MAX + 3], fault[FAULT_BYTES_MAX];
  int flag;
  translate(line, known, letters);
  opterr = 0;
  while ((flag = getopt_long(argc, argv, letters, known, NULL)) != -1) {
    if (flag == 'h') {
      if (rank == 0)
        fputs(line->help, stdout);
      return OPTIONS_HELP_SHOWN;
    }
    if (flag == ':')
      return wrong(rank, "a value is missing after", argv[optind - 1]);
    if (flag == '?')
      return wrong(rank, "unknown option", argv[optind - 1]);
    if (!take(rule_of(line, flag), optarg, fault))
      return wrong(rank, fault, optarg);
  }
  return OPTIONS_RUN;
}

enum options_outcome command_line_parse(const struct command_line *line, int argc, char **argv,
                                        int rank) {
  enum options_outcome outcome = parse_flags(line, argc, argv, rank);
  if (outcome != OPTIONS_RUN)
    return outcome;
  if (argc - optind > (line->operand != NULL)) {
    char what[FAULT_BYTES_MAX] = "unexpected";
    if (line->operand != NULL)
      snprintf(what, sizeof what, "one %s is enough; unexpected", line->operand_name);
    return wrong(rank, what, argv[optind + (line->operand != NULL)]);
  }
  if (argc - optind == 1)
    *line->operand = argv[optind];
  return OPTIONS_RUN;
}
