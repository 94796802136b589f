/* Chains: elementwise operations on floats whose results stay in registers from one to the next.
 *
 * The result of an operation is the first operand of the next one; it is written to memory only
 * where a later one needs it. Sums of all elements of a result are taken on the way. */
#ifndef CHAINS_H
#define CHAINS_H

#include "planning.h"

/* Bytes of the elements that are in registers at a time, and the fewest of an array in a chain. */
enum { UNIT_BYTES = 256 };

/* Elements of a group beside those of operators. */
enum { SUM = ELEMENTWISE_COUNT, SUM_OF_SQUARES, BROADCAST, TAKEN, CHAIN };

/* Operations on the last result and an operand x, which is an array or a number. */
typedef enum {
  LOAD, PLUS, MINUS, FROM, TIMES, OVER, UNDER, /* FROM subtracts from x, UNDER divides x */
  LOAD_NUMBER, PLUS_NUMBER, MINUS_NUMBER, FROM_NUMBER, TIMES_NUMBER, OVER_NUMBER, UNDER_NUMBER,
  SQUARED, NEGATED, MAGNITUDE, INVERTED,
  /* On the product of an array and another operand, which is in the next link. */
  PLUS_PRODUCT, MINUS_PRODUCT, FROM_PRODUCT,
  PLUS_PRODUCT_NUMBER, MINUS_PRODUCT_NUMBER, FROM_PRODUCT_NUMBER, FACTOR,
  LOAD_TAKEN, OFFSETS, /* elements of a vector at offsets, which are in the next link */
  SKIP_IF, SKIP_UNLESS, /* leave out the next operation by a condition */
  STORE,
  ADD_UP, ADD_UP_PRODUCT, ADD_UP_SQUARES, /* to the lanes in the link; a factor is in the next one */
  END,
} LinkCode;

typedef struct {
  const void *operation; /* of the interpreter */
  char *at;
  int64_t step; /* bytes from an element to the next; 0 within a block */
  int64_t value;
  LinkCode code;
  int is_local; /* whether the address is within the memory of a block */
} Link;

/* Whether a link adds to a sum, whose lanes it has. */
static inline int adds_up(LinkCode code) {
  return code == ADD_UP || code == ADD_UP_PRODUCT || code == ADD_UP_SQUARES;
}

/* A sum of all elements. */
typedef struct {
  char lanes[32]; /* of a register */
  char *at;
  int64_t step, value;
} Total;

typedef struct {
  int length, total_count, is_ready;
  Link *links; /* the last one is END */
  Total *totals;
} Chain;

/* Return the elements of the next block of a group; those of the last one fill a unit. */
static inline int64_t block_elements(int64_t rest) {
  if (rest <= BLOCK_ELEMENTS) return rest;
  return rest < BLOCK_ELEMENTS + BLOCK_ELEMENTS / 2 ? BLOCK_ELEMENTS / 2 : BLOCK_ELEMENTS;
}
static inline int64_t block_index(int64_t start) {
  return (start + BLOCK_ELEMENTS - 1) / BLOCK_ELEMENTS;
}

/* Whether operations on arrays of a type and a size can be in chains. */
static inline int can_chain(int dtype, int64_t size) {
#ifdef __wasm__
  return (void)dtype, (void)size, 0;
#else
  int is_float = dtype == FLOAT64 || dtype == FLOAT32;
  return is_float && size * (int64_t)bytes_of_element(dtype) >= UNIT_BYTES;
#endif
}

/* Return the elements of a group in an order in which chains are as long as possible, with the
 * chains in place of theirs, and set their number. */
Element *make_chains(Plan *plan, const Group *group, int *count);

#endif
