#include "json.h"

/* Continuation bytes that must follow a lead byte, or -1 if it leads nothing. */
static int continuation_count(unsigned char lead) {
  if (lead < 0x80)
    return 0;
  if (lead >= 0xc2 && lead <= 0xdf)
    return 1;
  if (lead >= 0xe0 && lead <= 0xef)
    return 2;
  return lead >= 0xf0 && lead <= 0xf4 ? 3 : -1;
}

/* Overlong forms, surrogates and code points beyond U+10FFFF show in the second byte. */
static int second_byte_is_allowed(unsigned char lead, unsigned char second) {
  switch (lead) {
  case 0xe0:
    return second >= 0xa0;
  case 0xed:
    return second <= 0x9f;
  case 0xf0:
    return second >= 0x90;
  case 0xf4:
    return second <= 0x8f;
  default:
    return 1;
  }
}

/* Bytes of the UTF-8 character at text, 0 if there is none. */
static int character_length(const unsigned char *text) {
  int count = continuation_count(text[0]);
  for (int i = 1; i <= count; i++)
    if ((text[i] & 0xc0) != 0x80)
      return 0;
  if (count > 0 && !second_byte_is_allowed(text[0], text[1]))
    return 0;
  return count + 1;
}

void json_print_string(FILE *out, const char *text) {
  const unsigned char *next = (const unsigned char *)text;
  fputc('"', out);
  while (*next != '\0') {
    int length = character_length(next);
    if (length == 0)
      fputs("\\ufffd", out);
    else if (*next == '"' || *next == '\\')
      fprintf(out, "\\%c", *next);
    else if (*next < 0x20 || *next == 0x7f)
      fprintf(out, "\\u%04x", *next);
    else
      fwrite(next, 1, (size_t)length, out);
    next += length > 0 ? length : 1;
  }
  fputc('"', out);
}
