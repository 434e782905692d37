#define _GNU_SOURCE
#include "settings/hints.h"

#include <errno.h>
#include <fnmatch.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\\';
}

/* Cuts blanks, and the backslashes that join lines, from both ends. */
static char *trimmed(char *text) {
  while (is_blank(*text))
    text++;
  size_t length = strlen(text);
  while (length > 0 && is_blank(text[length - 1]))
    text[--length] = '\0';
  return text;
}

/* Ends the word at *rest at the next separator outside of #...#, and moves *rest behind it. */
static char *take(char **rest, char separator) {
  char *word = *rest;
  bool is_quoted = false;
  for (char *at = word; *at != '\0'; at++) {
    if (*at == '#') /* one without a partner quotes nothing, lest it swallow all that follows */
      is_quoted = !is_quoted && strchr(at + 1, '#') != NULL;
    if (*at != separator || is_quoted)
      continue;
    *at = '\0';
    *rest = at + 1;
    return word;
  }
  *rest = NULL;
  return word;
}

/* Removes the '#' around a value; NULL if only one of them is there. */
static char *unquoted(char *value) {
  size_t length = strlen(value);
  if (value[0] != '#')
    return strchr(value, '#') == NULL ? value : NULL;
  if (length < 2 || value[length - 1] != '#')
    return NULL;
  value[length - 1] = '\0';
  return value + 1;
}

static bool has_control(const char *text) {
  for (; *text != '\0'; text++)
    if ((unsigned char)*text < ' ' || *text == 0x7f)
      return true;
  return false;
}

/* A number of bytes above 0; else 0. */
static unsigned long long bytes_of(const char *value) {
  char *end;
  errno = 0;
  unsigned long long bytes = strtoull(value, &end, 10);
  return value[strspn(value, "0123456789")] == '\0' && errno == 0 ? bytes : 0;
}

static bool is_on_or_off(const char *value) {
  return strcmp(value, "enable") == 0 || strcmp(value, "disable") == 0;
}

static const char *fault_of(const char *key, const char *value) {
  if (key[0] == '\0')
    return "has no name before '='";
  if (strlen(key) >= MPI_MAX_INFO_KEY)
    return "has a name longer than this MPI allows";
  if (value == NULL)
    return "has a '#' without its partner";
  if (value[0] == '\0')
    return "has no value";
  if (strlen(value) >= MPI_MAX_INFO_VAL)
    return "has a value longer than this MPI allows";
  if (has_control(key) || has_control(value))
    return "holds a line end or another control character";
  if (strpbrk(value, "=;") != NULL)
    return "holds more than one '='; hints are separated by ':'";
  if (strcmp(key, LAZY_IO) == 0)
    return is_on_or_off(value) ? NULL : "is neither enable nor disable";
  if (!hint_is_for_mpi(key) && bytes_of(value) == 0)
    return "is not a number of bytes above 0";
  return NULL;
}

static void parse_pair(char *item, hints_complaint *complain, struct hint_rule *rule) {
  char *equals = strchr(item, '=');
  if (equals == NULL) {
    complain(item, "is not KEY=VALUE; a value with ':' in it is written #VALUE#");
    return;
  }
  *equals = '\0';
  char *key = trimmed(item), *text = trimmed(equals + 1);
  char *value = unquoted(text);
  const char *fault = fault_of(key, value);
  if (fault != NULL)
    complain(key[0] != '\0' ? key : text, fault);
  else if (rule->count == HINTS_PER_RULE_MAX)
    complain(key, "is one hint too many for its pattern");
  else
    rule->hints[rule->count++] = (struct hint){key, value};
}

static bool parse_rule(char *item, hints_complaint *complain, struct hint_rule *rule) {
  char *rest = item;
  rule->count = 0;
  rule->pattern = trimmed(take(&rest, ':'));
  if (rule->pattern[0] == '\0' || strchr(rule->pattern, '=') != NULL) {
    complain(rule->pattern, "stands where a file pattern is expected");
    return false;
  }
  while (rest != NULL) {
    char *pair = trimmed(take(&rest, ':'));
    if (pair[0] != '\0')
      parse_pair(pair, complain, rule);
  }
  if (rule->count == 0)
    complain(rule->pattern, "is a file pattern without a hint that can be used");
  return rule->count > 0;
}

void hints_parse(const char *text, hints_complaint *complain, struct hints *hints) {
  *hints = (struct hints){.text = strdup(text)};
  hints->rules = calloc(HINT_RULES_MAX, sizeof *hints->rules);
  if (hints->text == NULL || hints->rules == NULL) {
    complain(text, "does not fit into memory");
    return;
  }
  char *rest = hints->text;
  while (rest != NULL) {
    char *item = trimmed(take(&rest, ','));
    if (item[0] == '\0')
      continue;
    if (hints->count == HINT_RULES_MAX)
      complain(item, "is one file pattern too many");
    else if (parse_rule(item, complain, &hints->rules[hints->count]))
      hints->count++;
  }
}

static bool matches(const char *pattern, const char *name, const char *absolute) {
  if (fnmatch(pattern, name, 0) == 0 || fnmatch(pattern, absolute, 0) == 0)
    return true;
  const char *slash = strrchr(name, '/');
  return strchr(pattern, '/') == NULL && slash != NULL && fnmatch(pattern, slash + 1, 0) == 0;
}

const struct hint_rule *hints_find(const struct hints *hints, const char *name,
                                   const char *absolute) {
  for (int i = 0; i < hints->count; i++)
    if (matches(hints->rules[i].pattern, name, absolute))
      return &hints->rules[i];
  return NULL;
}

bool hint_is_for_mpi(const char *key) {
  return strcmp(key, HDF5_ALIGNMENT) != 0 && strcmp(key, HDF5_THRESHOLD) != 0 &&
         strcmp(key, LAZY_IO) != 0;
}

bool hints_are_for_mpi(const struct hint_rule *rule) {
  for (int i = 0; i < rule->count; i++)
    if (hint_is_for_mpi(rule->hints[i].key))
      return true;
  return false;
}

bool hints_any_for_mpi(const struct hints *hints) {
  for (int i = 0; i < hints->count; i++)
    if (hints_are_for_mpi(&hints->rules[i]))
      return true;
  return false;
}

bool hints_lazy(const struct hint_rule *rule, bool otherwise) {
  for (int i = 0; rule != NULL && i < rule->count; i++)
    if (strcmp(rule->hints[i].key, LAZY_IO) == 0)
      return strcmp(rule->hints[i].value, "enable") == 0;
  return otherwise;
}

struct hint_alignment hints_alignment(const struct hint_rule *rule) {
  struct hint_alignment alignment = {0};
  for (int i = 0; i < rule->count; i++) {
    const struct hint *hint = &rule->hints[i];
    if (strcmp(hint->key, HDF5_ALIGNMENT) == 0)
      alignment.bytes = bytes_of(hint->value);
    else if (strcmp(hint->key, HDF5_THRESHOLD) == 0)
      alignment.threshold_bytes = bytes_of(hint->value);
  }
  if (alignment.threshold_bytes == 0)
    alignment.threshold_bytes = alignment.bytes / 2;
  return alignment;
}
