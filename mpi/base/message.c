#define _GNU_SOURCE
#include "base/message.h"

#include "base/real_call.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MESSAGE_BYTES_MAX = 8192 };

/* Not by fprintf: our own hook would count it where the program has put stderr into a file. */
void message_write(const char *text) {
  size_t left = strlen(text);
  for (ssize_t moved; left > 0; text += moved, left -= (size_t)moved) {
    moved = REAL(write)(fileno_unlocked(stderr), text, left);
    if (moved < 0 && errno == EINTR)
      moved = 0;
    else if (moved <= 0)
      return;
  }
}

void message_print(const char *format, ...) {
  static const char head[] = "forebay: ";
  char text[MESSAGE_BYTES_MAX + sizeof head];
  va_list arguments;
  va_start(arguments, format);
  memcpy(text, head, sizeof head);
  vsnprintf(text + sizeof head - 1, MESSAGE_BYTES_MAX, format, arguments);
  va_end(arguments);
  strcat(text, "\n");
  message_write(text);
}
