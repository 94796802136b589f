/* Instructions whose sizes depend on values: they are planned in the course of a run. */
#include <stdlib.h>

#include "planners.h"

enum { MOST_PLANS = 256, MOST_BYTES = 1 << 24, MOST_DEPTH = 200 };

/* A plan for some sizes, those used last first. */
typedef struct Kept {
  struct Kept *next;
  Plan *plan;
} Kept;

/* The operands that decide sizes come first, so that plans for others are soon told apart. */
typedef struct {
  Owned owned;
  const Tape *tape;
  Block block;
  Array *in, *out;
  const char **from, **length; /* data, and the number of rows where it depends on values */
  int64_t *rows; /* the largest such number */
  char **to, *bases;
  Kept *kept;
  int count;
  size_t bytes;
} Late;

static void free_kept(Late *late, Kept **at) {
  Kept *freed = *at;
  *at = freed->next;
  late->count--;
  late->bytes -= plan_bytes(freed->plan);
  free_plan(freed->plan);
  free(freed);
}

static void release(Owned *owned) {
  Late *late = (Late *)owned;
  while (late->kept) free_kept(late, &late->kept);
}

#ifndef __wasm__
int late_plan_count(const Plan *plan) {
  int count = 0;
  for (const Owned *owned = owned_by(plan); owned; owned = owned->next) {
    if (owned->release == release) count += ((const Late *)owned)->count;
  }
  return count;
}
#endif

static void read_operands(Late *late) {
  for (int i = 0; i < late->block.inputs; i++) {
    late->in[i].data = (void *)late->from[i];
    if (!late->length[i]) continue;
    late->in[i].shape[0] = between(*(const int64_t *)late->length[i], 0, late->rows[i]);
    count_elements(&late->in[i]);
  }
}

/* Make a plan for the present operands, and drop the one that was used longest ago if there are too
 * many; a message, or NULL. */
static const char *add_plan(Late *late) {
  const char *problem = NULL;
  Kept *made = malloc(sizeof *made);
  if (!made) return "out of memory";
  made->plan = make_plan(late->tape, &late->block, late->in, late->bases, late->out, &problem);
  if (!made->plan) return free(made), problem;
  for (int i = 0; i < late->block.outputs; i++) {
    if (same_shape(plan_output(made->plan, i), &late->out[i])) continue;
    return free_plan(made->plan), free(made), "a state changes its size";
  }
  made->next = late->kept;
  late->kept = made;
  late->count++;
  late->bytes += plan_bytes(made->plan);
  while (late->count > 1 && (late->count > MOST_PLANS || late->bytes > MOST_BYTES)) {
    Kept **last = &late->kept;
    while ((*last)->next) last = &(*last)->next;
    free_kept(late, last);
  }
  return NULL;
}

/* Run the instructions by the plan for the present operands. */
static const char *run_present(Late *late) {
  read_operands(late);
  Kept **at = &late->kept;
  while (*at && !plan_fits((*at)->plan, late->in)) at = &(*at)->next;
  if (*at) {
    Kept *found = *at;
    *at = found->next;
    found->next = late->kept;
    late->kept = found;
  } else {
    const char *problem = add_plan(late);
    if (problem) return problem;
  }
  return run_plan(late->kept->plan, late->in, (void *const *)late->to);
}

static const char *run_late(Step *step) {
  static _Thread_local int depth; /* of plans that such plans make, each on the stack */
  if (depth == MOST_DEPTH) return "too many sizes depend on each other";
  depth++;
  const char *problem = run_present(step->extra);
  depth--;
  return problem;
}

/* What is known of a value beside its slot. */
enum { MADE = 1, DECIDES_SIZES = 2, TAKEN = 4 };

static void mark_sizes(const Tape *tape, const Instruction *instructions, int count, char *marks) {
  for (const Instruction *at = instructions; at < instructions + count; at++) {
    for (int i = 0; i < at->inputs && i < 63; i++) {
      if (at->sizes >> i & 1 && at->in[i] >= 0) marks[at->in[i]] |= DECIDES_SIZES;
    }
    const int64_t *inner;
    for (int k = bodies_of(at, &inner); k-- > 0;) {
      const Block *block = &tape->block[inner[k]];
      mark_sizes(tape, block->instructions, block->count, marks);
    }
  }
}

/* Return what a plan relies on for an operand beside its sizes. */
static char basis_of(Plan *plan, int64_t value, char marks) {
  if (slot(plan, value)->known) return SAME_MEMORY;
  return marks & DECIDES_SIZES ? SAME_ELEMENTS : SIZES_ONLY;
}

static int is_first(Plan *plan, int64_t value, char marks) {
  return slot(plan, value)->length >= 0 || basis_of(plan, value, marks) == SAME_ELEMENTS;
}

/* Return the number of operands: the values that some instructions read and do not make. */
static int find_operands(Plan *plan, const Instruction *instructions, int count, char *marks,
                         int64_t *operands) {
  int found = 0;
  for (int first = 1; first >= 0; first--) {
    for (const Instruction *at = instructions; at < instructions + count; at++) {
      for (int i = 0; i < at->inputs; i++) {
        int64_t value = at->in[i];
        if (value < 0 || marks[value] & (MADE | TAKEN)) continue;
        if (is_first(plan, value, marks[value]) != first) continue;
        marks[value] |= TAKEN;
        operands[found++] = value;
      }
    }
  }
  return found;
}

/* Return the number of results: the outputs of the block that some instructions make. */
static int find_results(Plan *plan, const Block *block, char *marks, int64_t *results) {
  int found = 0;
  for (int i = 0; i < block->outputs; i++) {
    int64_t value = block->out[i];
    if (!(marks[value] & MADE) || marks[value] & TAKEN) continue;
    if (slot(plan, value)->expected < 0) refuse(plan, "the size of a result depends on values");
    Array like = slot(plan, slot(plan, value)->expected)->array;
    set_shape(plan, value, like.rank, like.shape);
    marks[value] |= TAKEN;
    results[found++] = value;
  }
  return found;
}

void plan_late(Plan *plan, const Block *block, Instruction *instructions, int count) {
  const Tape *tape = tape_of(plan);
  char *marks = scratch(plan, (size_t)tape->values + 1);
  int most = 0;
  for (int i = 0; i < count; i++) {
    most += instructions[i].inputs;
    for (int k = 0; k < instructions[i].outputs; k++) marks[instructions[i].out[k]] |= MADE;
  }
  mark_sizes(tape, instructions, count, marks);
  int64_t *operands = memory(plan, (size_t)(most + 1) * sizeof *operands);
  int64_t *results = memory(plan, (size_t)(block->outputs + 1) * sizeof *results);
  int inputs = find_operands(plan, instructions, count, marks, operands);
  int outputs = find_results(plan, block, marks, results);
  Step *step = emit(plan, run_late);
  Late *late = step->extra = memory(plan, sizeof *late);
  late->owned.release = release;
  own(plan, &late->owned);
  late->tape = tape;
  late->block = (Block){inputs, outputs, count, operands, results, instructions};
  late->in = memory(plan, (size_t)(inputs + 1) * sizeof *late->in);
  late->out = memory(plan, (size_t)(outputs + 1) * sizeof *late->out);
  late->from = memory(plan, (size_t)(inputs + 1) * sizeof *late->from);
  late->length = memory(plan, (size_t)(inputs + 1) * sizeof *late->length);
  late->rows = memory(plan, (size_t)(inputs + 1) * sizeof *late->rows);
  late->to = memory(plan, (size_t)(outputs + 1) * sizeof *late->to);
  late->bases = memory(plan, (size_t)inputs + 1);
  for (int i = 0; i < inputs; i++) {
    late->in[i] = slot(plan, operands[i])->array;
    late->rows[i] = late->in[i].shape[0];
    late->bases[i] = basis_of(plan, operands[i], marks[operands[i]]);
    reads(plan, &late->from[i], operands[i], 0);
    int length = slot(plan, operands[i])->length;
    if (length >= 0) reads(plan, &late->length[i], length, 0);
  }
  for (int i = 0; i < outputs; i++) {
    late->out[i] = slot(plan, results[i])->array;
    writes(plan, &late->to[i], results[i], 0);
  }
}
