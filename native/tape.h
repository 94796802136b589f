/* The tape: typed values, constants and blocks of instructions, as the session's pass writes it. */
#ifndef TAPE_H
#define TAPE_H

#include "kernel.h"

enum { TAPE_MAGIC = 0x70746b32 };

typedef struct {
  const struct Operator *op;
  int inputs, outputs, attributes;
  int64_t sizes;      /* a bit for each operand whose value decides sizes */
  const int64_t *in;  /* values, -1 where an operand is left out */
  const int64_t *out;
  const int64_t *attribute;
} Instruction;

typedef struct {
  int inputs, outputs, count;
  const int64_t *in, *out;
  Instruction *instructions;
} Block;

typedef struct {
  int64_t *words;
  int values, blocks;
  const int64_t *dtypes;
  int constants;
  int *constant_values;
  Array *constant_arrays;
  int givens;
  const int64_t *given; /* inputs of the region whose values decide sizes */
  Block *block; /* the first is the region, the others are bodies of its loops and branches */
  int *uses;    /* number of uses of each value */
} Tape;

/* Read a tape; NULL if it is damaged, malformed or names unknown operators. */
Tape *read_tape(const char *bytes, size_t size);
void free_tape(Tape *tape);
/* Set the sizes of an array whose bytes, and those of all its axes but the empty ones, are in the
 * range of a size; a problem, or NULL. */
const char *set_sizes(Array *array, int64_t rank, const int64_t *shape);
/* Return the number of the bodies that an instruction runs, and their blocks. */
int bodies_of(const Instruction *instruction, const int64_t **bodies);

#endif
