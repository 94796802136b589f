/* Statistical tests of the generators of native/ciphers.h by TestU01 (L'Ecuyer and Simard, 2007).
 *
 * cc -O3 -Inative benchmarks/testu01.c -o testu01 -ltestu01 -lprobdist -lmylib -lm
 * testu01 GENERATOR ORDER BATTERY [SEED], such as: testu01 threefry2x32 stream small */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bbattery.h"
#include "ciphers.h"
#include "unif01.h"

enum { MOST_WORDS = 4, STREAMS = 1024, LEVELS = 40 };

typedef struct {
  uint64_t words[2];
} Key;

static const char *generator;
static int words_of_block;

/* Write the words of a block, and those that are the key of its child. */
static Key encrypt(Key key, uint64_t counter, uint32_t *words) {
  Key child = {{0}};
  if (!strcmp(generator, "threefry2x32")) {
    uint32_t x = (uint32_t)(counter >> 32), y = (uint32_t)counter;
    threefry_2x32((uint32_t)key.words[0], (uint32_t)key.words[1], &x, &y);
    words[0] = x ^ y; /* the 32 bits of a draw, as in JAX */
    child = (Key){{x, y}};
  } else if (!strcmp(generator, "philox4x32")) {
    uint32_t block[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), 0, 0};
    philox_4x32((uint32_t)key.words[0], (uint32_t)key.words[1], block);
    memcpy(words, block, sizeof block);
    child = (Key){{block[0], block[1]}};
  } else {
    uint64_t x = counter, y = 0;
    threefry_2x64(key.words[0], key.words[1], &x, &y);
    words[0] = (uint32_t)(x >> 32), words[1] = (uint32_t)x;
    words[2] = (uint32_t)(y >> 32), words[3] = (uint32_t)y;
    child = (Key){{x, y}};
  }
  return child;
}

/* All numbers of one key, one after another. */
static Key root;
static unsigned int stream(void) {
  static uint64_t counter;
  static uint32_t words[MOST_WORDS];
  static int used = MOST_WORDS;
  if (used >= words_of_block) encrypt(root, counter++, words), used = 0;
  return words[used++];
}

/* The first number of each leaf of a tree, whose nodes split into the keys of counters 0 and 1. */
static unsigned int tree(void) {
  static Key path[LEVELS + 1];
  static uint64_t leaf;
  uint32_t words[MOST_WORDS];
  int changed = leaf ? __builtin_ctzll(leaf) + 1 : LEVELS;
  path[0] = root;
  for (int level = LEVELS - changed; level < LEVELS; level++) {
    uint64_t side = leaf >> (LEVELS - 1 - level) & 1;
    path[level + 1] = encrypt(path[level], side, words);
  }
  leaf++;
  encrypt(path[LEVELS], 0, words);
  return words[0];
}

/* A number of each of many streams in turn, which are the parts of one split. */
static unsigned int interleaved(void) {
  static Key keys[STREAMS];
  static uint32_t words[STREAMS][MOST_WORDS];
  static uint64_t counter, number;
  uint64_t i = number % STREAMS, place = number / STREAMS % (uint64_t)words_of_block;
  if (!number) {
    for (uint64_t k = 0; k < STREAMS; k++) keys[k] = encrypt(root, k, words[0]);
  }
  if (!place) encrypt(keys[i], counter, words[i]);
  number++;
  if (!place && i == STREAMS - 1) counter++;
  return words[i][place];
}

int main(int count, char **given) {
  static const char *const ORDERS[] = {"stream", "tree", "interleaved"};
  static unsigned int (*const NUMBERS[])(void) = {stream, tree, interleaved};
  if (count < 4) return 2;
  generator = given[1];
  words_of_block = strcmp(generator, "threefry2x32") ? 4 : 1;
  root.words[1] = count > 4 ? strtoull(given[4], NULL, 10) : 42;
  for (int i = 0; i < 3; i++) {
    if (strcmp(given[2], ORDERS[i])) continue;
    char name[100];
    snprintf(name, sizeof name, "%s, %s", generator, given[2]);
    unif01_Gen *tested = unif01_CreateExternGenBits(name, NUMBERS[i]);
    if (!strcmp(given[3], "big")) bbattery_BigCrush(tested);
    else if (!strcmp(given[3], "medium")) bbattery_Crush(tested);
    else bbattery_SmallCrush(tested);
    return 0;
  }
  return 2;
}
