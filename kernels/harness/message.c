#include "message.h"

#include <stdarg.h>
#include <stdio.h>

enum { MESSAGE_BYTES_MAX = 16384 };

/* One fprintf for a message keeps it whole when several ranks share a stderr. */
static void print_error(const char *format, va_list arguments) {
  static char text[MESSAGE_BYTES_MAX];
  vsnprintf(text, sizeof text, format, arguments);
  fprintf(stderr, "%s: error: %s\n", kernel_name, text);
}

void complain(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print_error(format, arguments);
  va_end(arguments);
}

void complain_once(int rank, const char *format, ...) {
  if (rank != 0)
    return;
  va_list arguments;
  va_start(arguments, format);
  print_error(format, arguments);
  va_end(arguments);
}
