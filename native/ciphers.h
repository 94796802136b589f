/* Counter-based ciphers (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11). */
#ifndef CIPHERS_H
#define CIPHERS_H

#include <stdint.h>

/* Wide and narrow vectors have copies of their own; the module of WebAssembly is small. */
#ifdef __wasm__
#define CIPHER static inline
#else
#define CIPHER static inline __attribute__((always_inline))
#endif

#define TURNED(x, n, bits) ((x) << (n) | (x) >> ((bits) - (n)))
#define ROUND(n, bits) (x += y, y = TURNED(y, n, bits) ^ x)
#define FOUR_ROUNDS(a, b, c, d, bits) (ROUND(a, bits), ROUND(b, bits), ROUND(c, bits), ROUND(d, bits))
#define ADD_KEY(first, second, i) (x += first, y += second + i)

/* Encrypt two words by Threefry-2x32 with 20 rounds. */
CIPHER void threefry_2x32(uint32_t a, uint32_t b, uint32_t *first, uint32_t *second) {
  uint32_t x = *first + a, y = *second + b, c = 0x1BD11BDA ^ a ^ b;
  FOUR_ROUNDS(13, 15, 26, 6, 32);
  ADD_KEY(b, c, 1);
  FOUR_ROUNDS(17, 29, 16, 24, 32);
  ADD_KEY(c, a, 2);
  FOUR_ROUNDS(13, 15, 26, 6, 32);
  ADD_KEY(a, b, 3);
  FOUR_ROUNDS(17, 29, 16, 24, 32);
  ADD_KEY(b, c, 4);
  FOUR_ROUNDS(13, 15, 26, 6, 32);
  ADD_KEY(c, a, 5);
  *first = x, *second = y;
}

/* Encrypt two words by Threefry-2x64 with 20 rounds. */
CIPHER void threefry_2x64(uint64_t a, uint64_t b, uint64_t *first, uint64_t *second) {
  uint64_t x = *first + a, y = *second + b, c = 0x1BD11BDAA9FC1A22 ^ a ^ b;
  FOUR_ROUNDS(16, 42, 12, 31, 64);
  ADD_KEY(b, c, 1);
  FOUR_ROUNDS(16, 32, 24, 21, 64);
  ADD_KEY(c, a, 2);
  FOUR_ROUNDS(16, 42, 12, 31, 64);
  ADD_KEY(a, b, 3);
  FOUR_ROUNDS(16, 32, 24, 21, 64);
  ADD_KEY(b, c, 4);
  FOUR_ROUNDS(16, 42, 12, 31, 64);
  ADD_KEY(c, a, 5);
  *first = x, *second = y;
}

/* Encrypt four words by Philox-4x32 with 10 rounds. */
CIPHER void philox_4x32(uint32_t first, uint32_t second, uint32_t words[4]) {
  uint32_t a = words[0], b = words[1], c = words[2], d = words[3];
  for (int i = 0; i < 10; i++) {
    uint64_t x = (uint64_t)0xD2511F53 * a, y = (uint64_t)0xCD9E8D57 * c;
    a = (uint32_t)(y >> 32) ^ b ^ first;
    b = (uint32_t)y;
    c = (uint32_t)(x >> 32) ^ d ^ second;
    d = (uint32_t)x;
    first += 0x9E3779B9;
    second += 0xBB67AE85;
  }
  words[0] = a, words[1] = b, words[2] = c, words[3] = d;
}

#endif
