#ifndef FOREBAY_MPI_UTF8_H
#define FOREBAY_MPI_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the UTF-8 sequence that begins here, 0 if none does. */
static inline size_t utf8_length(const unsigned char *at) {
  size_t length = at[0] < 0x80             ? 1
                  : (at[0] & 0xe0) == 0xc0 ? 2
                  : (at[0] & 0xf0) == 0xe0 ? 3
                  : (at[0] & 0xf8) == 0xf0 ? 4
                                           : 0;
  for (size_t i = 1; i < length; i++)
    if ((at[i] & 0xc0) != 0x80)
      return 0;
  bool is_overlong = (length == 2 && at[0] < 0xc2) ||
                     (length == 3 && at[0] == 0xe0 && at[1] < 0xa0) ||
                     (length == 4 && at[0] == 0xf0 && at[1] < 0x90);
  bool is_surrogate = length == 3 && at[0] == 0xed && at[1] >= 0xa0;
  bool is_too_large = length == 4 && (at[0] > 0xf4 || (at[0] == 0xf4 && at[1] >= 0x90));
  return is_overlong || is_surrogate || is_too_large ? 0 : length;
}

#endif
