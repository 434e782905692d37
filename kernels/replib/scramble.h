/* A small mixing function in place of rand(): what is drawn is the same on every machine. */
#ifndef REPLIB_SCRAMBLE_H
#define REPLIB_SCRAMBLE_H

#include <stdint.h>

static inline uint32_t scramble(uint32_t value) {
  value = (value ^ (value >> 16)) * UINT32_C(0x21f0aaad);
  value = (value ^ (value >> 15)) * UINT32_C(0x735a2d97);
  return value ^ (value >> 15);
}

#endif
