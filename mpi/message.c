#include "message.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MESSAGE_BYTES_MAX = 8192 };

static bool is_started;
static struct stat at_start; /* st_mode 0: there was no stderr */

void message_start(void) {
  if (fstat(STDERR_FILENO, &at_start) != 0)
    at_start = (struct stat){0};
  is_started = true;
}

static bool is_stderr_still_there(void) {
  struct stat now;
  if (!is_started)
    return true;
  return fstat(STDERR_FILENO, &now) == 0 && at_start.st_mode != 0 &&
         now.st_dev == at_start.st_dev && now.st_ino == at_start.st_ino;
}

void message_print_text(const char *text) {
  if (is_stderr_still_there())
    fputs(text, stderr);
}

void message_print(const char *format, ...) {
  char text[MESSAGE_BYTES_MAX];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (is_stderr_still_there())
    fprintf(stderr, "forebay: %s\n", text);
}
