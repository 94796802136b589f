/* The state of a plan, for the files that make and run plans. */
#ifndef PLANNING_H
#define PLANNING_H

#ifndef __wasm__
#include <setjmp.h>
#endif

#include "elementwise.h"
#include "planners.h"

enum { BLOCK_ELEMENTS = 512, ALIGNMENT = 64 };

typedef struct Workspace Workspace;

/* Elementwise instructions that run together, block by block. */
typedef struct {
  Element *elements;
  int count, capacity;
  int64_t size;
  int64_t begin, end; /* times of its step */
  int parts;          /* that threads run at once */
} Group;

typedef struct Chunk {
  struct Chunk *next;
  int64_t data[];
} Chunk;

typedef struct {
  char **where;
  int64_t value, offset;
} Address;

struct Plan {
  const Tape *tape;
  const Block *block;
  Slot *slots;
  int values, capacity;
  Array *inputs;
  char *bases;
  Array *results; /* sizes of the outputs */
  Address *addresses, *bound;
  int address_count, address_capacity, bound_count;
  Chunk *chunks, *scratch;
  Owned *owned;
  Address *work; /* addresses in the workspace, with the offsets from its begin */
  int work_count;
  char *workspace, *base; /* the plan's own, NULL if plans share it; the aligned begin */
  size_t bytes, work_bytes;
  Workspace *taken; /* by a run, if plans share it */
  Steps main, *steps;
  Step *at; /* the next step of a run in parts */
  Progress progress;
  Group group, folded;
  int64_t time;
  int step_count, *first_step; /* steps of `main`; the first one of each instruction of the block */
  int folds;
#ifndef __wasm__
  jmp_buf refusal;
#endif
  const char *problem;
};

/* Values. */
static inline void clear(Slot *made, int64_t value, int dtype, int uses) {
  memset(made, 0, sizeof *made);
  made->array.dtype = dtype;
  made->root = (int)value;
  made->output = made->length = made->expected = -1;
  made->uses = uses;
  made->first = INT64_MAX;
  made->last = -1;
}

static inline Slot *root_of(Plan *plan, int64_t value) {
  return &plan->slots[plan->slots[value].root];
}
/* Extend the time in which the memory of a root is in use. */
static inline void extend(Slot *root, int64_t time) {
  if (time < root->first) root->first = time;
  if (time > root->last) root->last = time;
}
void free_chunks(Chunk **chunks);
/* Return an array with room for one more element, which moves where it is full. */
void *grown(Plan *plan, void *array, int count, int *capacity, size_t bytes);
/* Give a value memory of its own when it is first written. */
void place(Plan *plan, int64_t value);
/* Note that a step has an address in the memory of a value. */
void address(Plan *plan, char **where, int64_t value, int64_t offset);

/* Groups. */
void broadcast_shape(Plan *plan, const Instruction *instruction, Array *result);
void append(Plan *plan, Group *group, const Instruction *instruction);
/* Add the sum of all elements of an array, as a number or in parts by block; return its value. */
int64_t append_sum(Plan *plan, Group *group, const Instruction *instruction, int op);
void append_taken(Plan *plan, Group *group, const Instruction *instruction, const int64_t *offsets);
/* Emit the step of a group, and empty the group. */
void close_group(Plan *plan, Group *group);

/* The workspace. */
/* Lay out the values in it, set the addresses that are known, and keep those within the workspace,
 * inputs and outputs. */
void lay_out(Plan *plan);
/* Take the memory for a run; a message without. */
const char *open_workspace(Plan *plan);
void close_workspace(Plan *plan);

#endif
