/* The tape: typed values, constants and blocks of instructions, as the session's pass writes it. */
#ifndef TAPE_H
#define TAPE_H

#include "arrays.h"

enum { TAPE_MAGIC = 0x70746b32 };

typedef struct Plan Plan;
typedef struct Instruction Instruction;

/* Emit the steps of an instruction; `refuse` where the tape cannot run for the sizes. */
typedef void Planner(Plan *plan, const Instruction *instruction);

/* The first have no planner of their own, the last have bodies. */
typedef enum { ELEMENTWISE, STEPS, VIEW, IF, SCAN, LOOP } OperatorKind;

/* The types are a letter for each operand, `>` and a letter for each result: T for one type, F if it
 * is one of floats, I for int64, i for int32 too, B for bool, * for any; operands after ? may be left
 * out, and + repeats the letter before it. */
typedef struct {
  const char *name;
  unsigned char kind; /* an OperatorKind; a view has no steps unless its result is known */
  unsigned char attributes; /* the fewest */
  Planner *plan; /* of operators that are not elementwise */
  const char *types;
#ifndef __wasm__
  const struct Member *member; /* how it runs in a group, NULL where it cannot */
#endif
} Operator;

typedef struct Block Block;

/* All operators, elementwise ones first: tapes name them by their places, and planners are known by
 * them alone, so that no planner is known to the files that make plans. */
typedef struct {
  const Operator *all;
  int count;
  const char *results; /* types of elementwise operators' results, 0 where `Operator.types` says it */
  /* Emit a step that plans and runs some instructions of a block when the values are known that
   * decide their sizes. */
  void (*late)(Plan *plan, const Block *block, Instruction *instructions, int count);
} Operators;

struct Instruction {
  const Operator *op;
  int inputs, outputs, attributes;
  int64_t sizes;      /* a bit for each operand whose value decides sizes */
  const int64_t *in;  /* values, -1 where an operand is left out */
  const int64_t *out;
  const int64_t *attribute;
};

struct Block {
  int inputs, outputs, count;
  const int64_t *in, *out;
  Instruction *instructions;
};

typedef struct {
  const Operators *operators;
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
  int threads;  /* that may run a step of it at once */
} Tape;

/* Read a tape; NULL if it is damaged, malformed or names unknown operators. */
Tape *read_tape(const Operators *operators, const char *bytes, size_t size);
void free_tape(Tape *tape);
/* Return the number of the bodies that an instruction runs, and their blocks. */
int bodies_of(const Instruction *instruction, const int64_t **bodies);

#endif
