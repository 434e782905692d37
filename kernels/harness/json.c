#include "json.h"

#include "../mpi/include/utf8.h"

void json_print_string(FILE *out, const char *text) {
  const unsigned char *next = (const unsigned char *)text;
  fputc('"', out);
  while (*next != '\0') {
    size_t length = utf8_length(next);
    if (length == 0)
      fputs("\\ufffd", out);
    else if (*next == '"' || *next == '\\')
      fprintf(out, "\\%c", *next);
    else if (*next < 0x20 || *next == 0x7f)
      fprintf(out, "\\u%04x", *next);
    else
      fwrite(next, 1, length, out);
    next += length > 0 ? length : 1;
  }
  fputc('"', out);
}
