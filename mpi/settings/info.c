#include "settings/info.h"

#include "base/library.h"

#include <stdio.h>
#include <string.h>

MPI_Info info_merged(MPI_Info info, const struct hint_rule *rule) {
  MPI_Info merged;
  if (info == library.no_info)
    library.Info_create(&merged);
  else
    library.Info_dup(info, &merged);
  for (int i = 0; i < rule->count; i++)
    if (hint_is_for_mpi(rule->hints[i].key))
      library.Info_set(merged, rule->hints[i].key, rule->hints[i].value);
  return merged;
}

static void blank_line_ends(char *text) {
  for (; *text != '\0'; text++)
    if (*text == '\n' || *text == '\r')
      *text = ' ';
}

void info_print(MPI_Info info, struct text *lines) {
  int keys = 0;
  if (info == library.no_info || library.Info_get_nkeys(info, &keys) != MPI_SUCCESS)
    return;
  for (int i = 0; i < keys; i++) {
    char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL + 1];
    int is_there = 0;
    if (library.Info_get_nthkey(info, i, key) == MPI_SUCCESS &&
        library.Info_get(info, key, MPI_MAX_INFO_VAL, value, &is_there) == MPI_SUCCESS &&
        is_there) {
      blank_line_ends(key);
      blank_line_ends(value);
      text_add(lines, "%s=%s\n", key, value);
    }
  }
}

bool info_next(const char **lines, struct info_line *line) {
  while (**lines != '\0') {
    const char *begin = *lines;
    size_t length = strcspn(begin, "\n"), key = strcspn(begin, "=\n");
    *lines += length + (begin[length] == '\n');
    if (key == length)
      continue;
    *line = (struct info_line){begin, begin + key + 1, (int)key, (int)(length - key - 1)};
    return true;
  }
  return false;
}

bool info_value(const char *lines, const char *key, char *value, size_t room) {
  size_t length = strlen(key);
  while (*lines != '\0') {
    size_t line = strcspn(lines, "\n");
    if (line > length && strncmp(lines, key, length) == 0 && lines[length] == '=') {
      snprintf(value, room, "%.*s", (int)(line - length - 1), lines + length + 1);
      return true;
    }
    lines += line + (lines[line] == '\n');
  }
  return false;
}
