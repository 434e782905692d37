#define _GNU_SOURCE
#include "base/text.h"

#include "include/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ROOM_AT_FIRST = 256, ROOM_MAPPED_AT_FIRST = 1 << 20, PIECE_BYTES_MAX = 1024 };

static char *mapped(struct text *text, size_t room) {
  void *bytes = text->bytes != NULL
                    ? mremap(text->bytes, text->room, room, MREMAP_MAYMOVE)
                    : mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return bytes != MAP_FAILED ? bytes : NULL;
}

static bool make_room(struct text *text, size_t more) {
  size_t at_first = text->is_mapped ? ROOM_MAPPED_AT_FIRST : ROOM_AT_FIRST;
  size_t room = text->room > 0 ? text->room : at_first;
  while (room < text->length + more + 1)
    room *= 2;
  if (room == text->room)
    return true;
  char *bytes = text->is_mapped ? mapped(text, room) : realloc(text->bytes, room);
  if (bytes == NULL) {
    text->is_cut = true;
    return false;
  }
  text->bytes = bytes;
  text->room = room;
  return true;
}

void text_add_bytes(struct text *text, const void *bytes, size_t length) {
  if (text->is_cut || !make_room(text, length))
    return;
  if (length > 0)
    memcpy(text->bytes + text->length, bytes, length);
  text->length += length;
  text->bytes[text->length] = '\0';
}

void text_add(struct text *text, const char *format, ...) {
  char piece[PIECE_BYTES_MAX];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(piece, sizeof piece, format, arguments);
  va_end(arguments);
  if (length < (int)sizeof piece) {
    text_add_bytes(text, piece, length > 0 ? (size_t)length : 0);
    return;
  }
  if (text->is_cut || !make_room(text, (size_t)length))
    return;
  va_start(arguments, format);
  vsnprintf(text->bytes + text->length, (size_t)length + 1, format, arguments);
  va_end(arguments);
  text->length += (size_t)length;
}

void text_add_json_string(struct text *text, const char *value) {
  text_add_bytes(text, "\"", 1);
  for (const unsigned char *at = (const unsigned char *)value; *at != '\0';) {
    size_t length = utf8_length(at);
    if (length == 0)
      text_add(text, "\\ufffd");
    else if (*at == '"' || *at == '\\')
      text_add(text, "\\%c", *at);
    else if (*at < 0x20)
      text_add(text, "\\u%04x", *at);
    else
      text_add_bytes(text, at, length);
    at += length > 0 ? length : 1;
  }
  text_add_bytes(text, "\"", 1);
}

void text_clear(struct text *text) {
  if (!text->is_mapped)
    free(text->bytes);
  else if (text->bytes != NULL)
    munmap(text->bytes, text->room);
  *text = (struct text){.is_mapped = text->is_mapped};
}

const char *text_of(const struct text *text) { return text->bytes != NULL ? text->bytes : ""; }
