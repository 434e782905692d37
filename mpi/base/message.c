#include "base/message.h"

#include <stdarg.h>
#include <stdio.h>

enum { MESSAGE_BYTES_MAX = 8192 };

void message_print(const char *format, ...) {
  char text[MESSAGE_BYTES_MAX];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  fprintf(stderr, "forebay: %s\n", text);
}
