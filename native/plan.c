/* Make plans: infer sizes, order and fuse instructions, compute known values, lay out memory. */
#include "plan.h"

#include <stdlib.h>
#include <string.h>

#include "chains.h"
#include "workspaces.h"
#ifndef __wasm__
#include <setjmp.h>
#endif

/* Larger workspaces are shared: a training step of a residual network takes 1.02 of the runtime's
 * time in place of 1.09, as the next plan finds the memory in the processor's cache. */
enum { ALIGNMENT = 64, SHARED_BYTES = 1 << 16 };

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
  Late *lates;
  Address *work; /* addresses in the workspace, with the offsets from its begin */
  int work_count;
  char *workspace, *base; /* the plan's own, NULL if plans share it; the aligned begin */
  size_t bytes, work_bytes;
  Workspace *taken; /* by a run in parts */
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

#ifdef __wasm__
#define IS_REFUSED(plan) 0
#else
#define IS_REFUSED(plan) setjmp((plan)->refusal)
void refuse(Plan *plan, const char *problem) {
  plan->problem = problem;
  longjmp(plan->refusal, 1);
}
#endif

static void *new_chunk(Plan *plan, Chunk **chunks, size_t bytes) {
  Chunk *chunk = calloc(1, sizeof *chunk + bytes + sizeof(int64_t));
  if (!chunk) refuse(plan, "out of memory");
  chunk->next = *chunks;
  *chunks = chunk;
  return chunk->data;
}

void *memory(Plan *plan, size_t bytes) {
  plan->bytes += bytes;
  return new_chunk(plan, &plan->chunks, bytes);
}

void *scratch(Plan *plan, size_t bytes) { return new_chunk(plan, &plan->scratch, bytes); }

static void free_chunks(Chunk **chunks) {
  while (*chunks) {
    Chunk *next = (*chunks)->next;
    free(*chunks);
    *chunks = next;
  }
}

/* Return an array with room for one more element, which moves where it is full. */
static void *grown(Plan *plan, void *array, int count, int *capacity, size_t bytes) {
  if (count < *capacity) return array;
  *capacity = *capacity ? 2 * *capacity : 16;
  /* `realloc` would be 700 bytes of the module of WebAssembly. */
  void *moved = malloc((size_t)*capacity * bytes);
  if (!moved) refuse(plan, "out of memory");
  copy_bytes(moved, array, count * (int64_t)bytes);
  free(array);
  return moved;
}

const Tape *tape_of(const Plan *plan) { return plan->tape; }
Late **lates_of(Plan *plan) { return &plan->lates; }
Slot *slot(Plan *plan, int64_t value) { return &plan->slots[value]; }
int has_operand(const Instruction *instruction, int i) {
  return i < instruction->inputs && instruction->in[i] >= 0;
}
Array *operand(Plan *plan, const Instruction *instruction, int i) {
  if (!has_operand(instruction, i)) refuse(plan, "an operand is missing");
  return &plan->slots[instruction->in[i]].array;
}
void require_all_rows(Plan *plan, int64_t value) {
  if (slot(plan, value)->length >= 0) refuse(plan, "the size of a result depends on values");
}
static Slot *root_of(Plan *plan, int64_t value) { return &plan->slots[plan->slots[value].root]; }

static void clear(Slot *made, int64_t value, int dtype, int uses) {
  memset(made, 0, sizeof *made);
  made->array.dtype = dtype;
  made->root = (int)value;
  made->output = made->length = made->expected = -1;
  made->uses = uses;
  made->first = INT64_MAX;
  made->last = -1;
}

int64_t new_value(Plan *plan, int dtype, int rank, const int64_t *shape) {
  plan->slots = grown(plan, plan->slots, plan->values, &plan->capacity, sizeof *plan->slots);
  clear(&plan->slots[plan->values], plan->values, dtype, 1);
  set_shape(plan, plan->values, rank, shape);
  return plan->values++;
}

void set_shape(Plan *plan, int64_t value, int rank, const int64_t *shape) {
  const char *problem = set_sizes(&plan->slots[value].array, rank, shape);
  if (problem) refuse(plan, problem);
}

int same_shape(const Array *a, const Array *b) {
  return a->rank == b->rank && !memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape);
}

static int64_t bytes_of(const Array *array) {
  return array->size * (int64_t)bytes_of_element(array->dtype);
}

void *fix(Plan *plan, int64_t value) {
  Slot *made = slot(plan, value);
  made->place = FIXED;
  made->known = 1;
  return made->array.data = memory(plan, (size_t)bytes_of(&made->array));
}

void touch(Plan *plan, int64_t value, int64_t time) {
  Slot *root = root_of(plan, value);
  if (time < root->first) root->first = time;
  if (time > root->last) root->last = time;
}

/* Note that a step has an address in the memory of a value. */
static void address(Plan *plan, char **where, int64_t value, int64_t offset) {
  Slot *root = root_of(plan, value);
  offset += plan->slots[value].offset;
  if (root->place == FIXED) {
    *where = (char *)root->array.data + offset;
    return;
  }
  plan->addresses = grown(plan, plan->addresses, plan->address_count, &plan->address_capacity,
                          sizeof *plan->addresses);
  plan->addresses[plan->address_count++] = (Address){where, plan->slots[value].root, offset};
}

/* Give a value memory of its own when it is first written. */
static void place(Plan *plan, int64_t value) {
  Slot *made = slot(plan, value);
  if (made->place != NOWHERE) return;
  if (plan->folds) {
    fix(plan, value);
  } else if (made->output >= 0) {
    made->place = OUTPUT;
    made->index = made->output;
  } else {
    made->place = WORK;
    made->bytes = bytes_of(&made->array);
  }
}

void reads(Plan *plan, const char **where, int64_t value, int64_t offset) {
  if (root_of(plan, value)->place == NOWHERE) refuse(plan, "a value is read before it is written");
  touch(plan, value, plan->time);
  address(plan, (char **)where, value, offset);
}

void writes(Plan *plan, char **where, int64_t value, int64_t offset) {
  place(plan, value);
  touch(plan, value, plan->time);
  address(plan, where, value, offset);
}

void shares(Plan *plan, int64_t value, int64_t other, int64_t offset) {
  Slot *made = slot(plan, value), *from = slot(plan, other);
  made->root = from->root;
  made->offset = from->offset + offset;
  made->known = from->known;
}

int known_integers(Plan *plan, int64_t value, int64_t *integers, int most) {
  Slot *given = slot(plan, value);
  if (!given->known) refuse(plan, "a size or an axis depends on values");
  if (given->array.dtype != INT32 && given->array.dtype != INT64) refuse(plan, "a size of another type");
  if (given->array.size > most) refuse(plan, "too many sizes");
  const char *data = (char *)root_of(plan, value)->array.data + given->offset;
  for (int64_t i = 0; i < given->array.size; i++) {
    integers[i] = given->array.dtype == INT32 ? ((const int32_t *)data)[i]
                                              : ((const int64_t *)data)[i];
  }
  return (int)given->array.size;
}

int64_t known_integer(Plan *plan, int64_t value) {
  int64_t found = 0;
  if (known_integers(plan, value, &found, 1) != 1) refuse(plan, "a size or an axis is missing");
  return found;
}

void require_one(Plan *plan, int64_t value) {
  if (slot(plan, value)->array.size != 1) refuse(plan, "an operand is no number");
}

static const char *run_copy(Step *step) {
  copy_bytes(step->out, step->in[0], step->n[0]);
  return NULL;
}

void copies(Plan *plan, int64_t out, int64_t in) {
  Step *step = emit(plan, run_copy);
  reads(plan, &step->in[0], in, 0);
  writes(plan, &step->out, out, 0);
  step->n[0] = bytes_of(&slot(plan, in)->array);
}

/* Elementwise instructions. */

void broadcast_shape(Plan *plan, const Instruction *instruction, Array *result) {
  result->rank = 0;
  for (int i = 0; i < instruction->inputs; i++) {
    const Array *given = operand(plan, instruction, i);
    while (result->rank < given->rank) {
      memmove(result->shape + 1, result->shape, (size_t)result->rank * sizeof *result->shape);
      result->shape[0] = 1;
      result->rank++;
    }
    int64_t *shape = result->shape + result->rank - given->rank;
    for (int axis = 0; axis < given->rank; axis++) {
      if (shape[axis] == 1) shape[axis] = given->shape[axis];
      else if (given->shape[axis] != 1 && given->shape[axis] != shape[axis]) {
        refuse(plan, "sizes differ");
      }
    }
  }
}

static void run_broadcast(const Element *element, int64_t start, int64_t count) {
  copy_layout(part_at(element, 0, start), element->at[1], element->extra,
              (size_t)element->value[2], start, count);
}

static Element *next_element(Plan *plan, Group *group) {
  group->elements = grown(plan, group->elements, group->count, &group->capacity,
                          sizeof *group->elements);
  Element *made = &group->elements[group->count++];
  memset(made, 0, sizeof *made);
  for (int i = 0; i < 4; i++) made->value[i] = -1;
  return made;
}

/* Return the value of an operand in the shape of the result, or a number. */
static int64_t stretched(Plan *plan, Group *group, int64_t value, const Array *result) {
  Array given = slot(plan, value)->array;
  if (given.size == result->size || given.size == 1) return value;
  int64_t strides[MOST_AXES], stretched_strides[MOST_AXES] = {0};
  strides_of(&given, strides);
  for (int axis = 0; axis < given.rank; axis++) {
    int at = axis + result->rank - given.rank;
    stretched_strides[at] = given.shape[axis] == 1 ? 0 : strides[axis];
  }
  Layout layout = layout_of(result->rank, result->shape, stretched_strides);
  for (int i = 0; i < group->count; i++) {
    const Element *other = &group->elements[i];
    if (other->run != run_broadcast || other->value[1] != value) continue;
    if (memcmp(other->extra, &layout, sizeof layout)) continue;
    slot(plan, other->value[0])->uses++;
    return other->value[0];
  }
  int64_t made = new_value(plan, given.dtype, result->rank, result->shape);
  Layout *kept = memory(plan, sizeof *kept);
  *kept = layout;
  Element *element = next_element(plan, group);
  element->run = run_broadcast;
  element->op = BROADCAST;
  element->value[0] = made;
  element->value[1] = value;
  element->value[2] = (int64_t)bytes_of_element(given.dtype);
  element->extra = kept;
  slot(plan, value)->group_uses++;
  return made;
}

static const ElementKernel *kernel_for(Plan *plan, const Instruction *instruction) {
  int op = (int)(instruction->op - OPERATORS), typed_by = op == ELEMENTWISE_Where;
  const ElementKernel *kernel = element_kernel(op, operand(plan, instruction, typed_by)->dtype);
  if (!kernel || !kernel->vectors) refuse(plan, "an operator has no kernel for a type");
  return kernel;
}

static ElementRun run_of(const ElementKernel *kernel, int inputs, int numbers, int is_one) {
#ifndef __wasm__
  if (is_one) return kernel->one;
  if (inputs == 2 && numbers == 1) return kernel->left_number;
  if (inputs == 2 && numbers == 2) return kernel->right_number;
#else
  (void)inputs, (void)numbers, (void)is_one;
#endif
  return kernel->vectors;
}

static void append(Plan *plan, Group *group, const Instruction *instruction) {
  const ElementKernel *kernel = kernel_for(plan, instruction);
  int64_t value[4] = {instruction->out[0], -1, -1, -1};
  const Array result = slot(plan, value[0])->array;
  int numbers = 0;
  for (int i = 0; i < instruction->inputs; i++) {
    value[i + 1] = stretched(plan, group, instruction->in[i], &result);
    slot(plan, value[i + 1])->group_uses++;
    if (result.size != 1 && slot(plan, value[i + 1])->array.size == 1) numbers |= 1 << i;
  }
  Element *element = next_element(plan, group);
  memcpy(element->value, value, sizeof value);
  element->op = (int)(instruction->op - OPERATORS);
  element->numbers = numbers;
  element->run = run_of(kernel, instruction->inputs, numbers, result.size == 1);
}

/* Add the sum of all elements of an array, as a number or in parts by block; return its value. */
static int64_t append_sum(Plan *plan, Group *group, const Instruction *instruction) {
  int64_t from = instruction->in[0], blocks = block_index(group->size);
  int dtype = slot(plan, from)->array.dtype;
  int64_t to = blocks > 1 ? new_value(plan, dtype, 1, &blocks) : instruction->out[0];
  Element *element = next_element(plan, group);
  element->op = takes_squares(instruction) ? SUM_OF_SQUARES : SUM;
  element->value[0] = to;
  element->value[1] = from;
  slot(plan, from)->group_uses++;
  return to;
}

static void append_taken(Plan *plan, Group *group, const Instruction *instruction) {
  const int64_t *offsets = take_elements(plan, instruction);
  Element *element = next_element(plan, group);
  element->run = run_taken;
  element->op = TAKEN;
  element->value[0] = instruction->out[0];
  element->value[1] = instruction->in[0];
  element->value[2] = bytes_of_element(slot(plan, instruction->in[0])->array.dtype);
  element->extra = (void *)offsets;
  slot(plan, instruction->in[0])->group_uses++;
}

/* Return whether a step has divided an integer by zero. */
static const char *division(Step *step) {
  if (!step->n[2]) return NULL;
  step->n[2] = 0;
  return "Integer division by zero";
}

static const char *run_once(Step *step) {
  const Element *element = step->extra, *end = element + step->n[1];
  int64_t count = step->n[0];
  for (; element < end; element++) element->run(element, 0, count);
  return division(step);
}

#ifdef __wasm__
/* Run a part of an element, and move its addresses to the next part. */
static void run_from(Element *element, int64_t start, int64_t count) {
  element->run(element, start, count);
  for (int i = 0; i < 4; i++) element->at[i] += (intptr_t)count * (intptr_t)element->step[i];
}

static void rewind_element(Element *element, int64_t count) {
  for (int i = 0; i < 4; i++) element->at[i] -= (intptr_t)count * (intptr_t)element->step[i];
}
#else
static void run_from(const Element *element, int64_t start, int64_t count) {
  element->run(element, start, count);
}

static void rewind_element(const Element *element, int64_t count) { (void)element, (void)count; }
#endif

static const char *run_blocks(Step *step) {
  Element *first = step->extra, *end = first + step->n[1];
  for (int64_t start = 0, count; start < step->n[0]; start += count) {
    count = block_elements(step->n[0] - start);
    for (Element *element = first; element < end; element++) run_from(element, start, count);
  }
  for (Element *element = first; element < end; element++) rewind_element(element, step->n[0]);
  return division(step);
}

static Step *append_step(Plan *plan, Run run) {
  Step *step = memory(plan, sizeof *step);
  step->run = run;
  *plan->steps->end = step;
  plan->steps->end = &step->next;
  plan->step_count += plan->steps == &plan->main;
  plan->time++;
  return step;
}

/* Set the address of an operand or result of a group's element, and its step to the next one. */
static void set_place(Plan *plan, const Group *group, int64_t value, int is_result, char **at,
                      int64_t *step) {
  Slot *given = slot(plan, value);
  int is_blocked = group->size > BLOCK_ELEMENTS, is_array = given->array.size == group->size;
  if (is_result) {
    given->is_local = !plan->folds && is_blocked && is_array && given->place == NOWHERE &&
                      given->group_uses == given->uses && given->output < 0;
    place(plan, value);
    if (given->is_local) {
      given->bytes = BLOCK_ELEMENTS * (int64_t)bytes_of_element(given->array.dtype);
    }
  } else if (root_of(plan, value)->place == NOWHERE) {
    refuse(plan, "a value is read before it is written");
  }
  *step = is_array && !given->is_local ? (int64_t)bytes_of_element(given->array.dtype) : 0;
  touch(plan, value, given->is_local || !is_blocked ? plan->time : group->end);
  if (!given->is_local && is_blocked) touch(plan, value, group->begin);
  address(plan, at, value, 0);
}

static void set_places(Plan *plan, const Group *group, Element *element) {
  if (element->op == CHAIN) {
    const Chain *chain = element->extra;
    for (Link *link = chain->links; link->code != END; link++) {
      if (link->value < 0) continue;
      set_place(plan, group, link->value, link->code == STORE, &link->at, &link->step);
      if (link->code == LOAD_TAKEN) link->step = 0;
    }
    for (Total *total = chain->totals; total < chain->totals + chain->total_count; total++) {
      set_place(plan, group, total->value, 1, &total->at, &total->step);
    }
    return;
  }
  /* Results after operands, since a result may be known once all operands have a place. */
  int is_moved = element->op == BROADCAST || element->op == TAKEN;
  for (int k = is_moved ? 1 : 3; k >= 0; k--) {
    if (element->value[k] < 0) continue;
    set_place(plan, group, element->value[k], !k, &element->at[k], &element->step[k]);
  }
  if (is_moved) element->step[1] = 0;
}

/* Emit the step of a group, and empty the group. */
static void close_group(Plan *plan, Group *group) {
  if (!group->count) return;
  int given = group->count, count = given;
  Step *step = append_step(plan, group->size > BLOCK_ELEMENTS ? run_blocks : run_once);
  Element *elements = make_chains(plan, group, &count);
  group->count = 0;
  step->extra = elements;
  step->n[0] = group->size;
  step->n[1] = count;
  group->begin = plan->time;
  group->end = plan->time + count;
  for (int i = 0; i < count; i++, plan->time++) {
    set_places(plan, group, &elements[i]);
    if (!elements[i].extra) elements[i].extra = &step->n[2];
  }
  for (int i = 0; i < given; i++) {
    const Element *element = &group->elements[i];
    for (int k = 0; k < (element->op == BROADCAST || element->op == TAKEN ? 2 : 4); k++) {
      if (element->value[k] >= 0) slot(plan, element->value[k])->group_uses = 0;
    }
  }
}

Step *emit(Plan *plan, Run run) {
  if (!plan->folds) close_group(plan, &plan->group);
  return append_step(plan, run);
}

/* Scheduling. */

static int is_known(Plan *plan, const Instruction *instruction) {
  for (int i = 0; i < instruction->inputs; i++) {
    if (instruction->in[i] >= 0 && !slot(plan, instruction->in[i])->known) return 0;
  }
  return 1;
}

/* Plan an instruction of known operands and run its steps now. */
static void fold(Plan *plan, const Instruction *instruction) {
  Steps steps = {NULL, NULL}, *outer = plan->steps;
  steps.end = &steps.first;
  plan->steps = &steps;
  plan->folds = 1;
  if (instruction->op->kind == ELEMENTWISE) {
    plan->folded.size = slot(plan, instruction->out[0])->array.size;
    append(plan, &plan->folded, instruction);
    close_group(plan, &plan->folded);
  } else {
    instruction->op->plan(plan, instruction);
  }
  const char *problem = run_steps(steps.first);
  plan->folds = 0;
  plan->steps = outer;
  if (problem) refuse(plan, problem);
}

/* Whether an instruction waits for values that decide sizes. */
static int is_late(Plan *plan, const Instruction *instruction) {
  for (int i = 0; i < instruction->inputs; i++) {
    if (instruction->in[i] < 0) continue;
    const Slot *given = slot(plan, instruction->in[i]);
    int decides_sizes = i < 63 && instruction->sizes >> i & 1;
    if (given->length >= 0 || (decides_sizes && !given->known)) return 1;
  }
  return 0;
}

enum { READY = -1, DONE = -2 };

/* The instructions of a block in the course of planning. */
typedef struct {
  const Block *block;
  int *waits;       /* number of operands that are not planned, by instruction, then READY, DONE */
  int *first_edge;  /* of the users of an instruction, -1 at the end */
  int *edge_next, *edge_user;
  int *edges; /* room for `mark_done` */
  int *ready, ready_count;
  int *sums, sum_count; /* instructions whose results the group has at its end */
  int64_t *parts;       /* values of these sums by block */
} Schedule;

static Schedule schedule_of(Plan *plan, const Block *block) {
  int edges = 0, values = plan->tape->values;
  for (int i = 0; i < block->count; i++) edges += block->instructions[i].inputs;
  Schedule made = {.block = block};
  size_t count = (size_t)block->count + 1;
  made.waits = scratch(plan, count * sizeof(int));
  made.first_edge = scratch(plan, count * sizeof(int));
  made.edges = scratch(plan, count * sizeof(int));
  made.ready = scratch(plan, count * sizeof(int));
  made.sums = scratch(plan, count * sizeof(int));
  made.parts = scratch(plan, count * sizeof(int64_t));
  made.edge_next = scratch(plan, (size_t)(edges + 1) * sizeof(int));
  made.edge_user = scratch(plan, (size_t)(edges + 1) * sizeof(int));
  int *maker = scratch(plan, (size_t)(values + 1) * sizeof(int)); /* index + 1 */
  for (int i = 0; i < block->count; i++) {
    made.first_edge[i] = -1;
    const Instruction *instruction = &block->instructions[i];
    for (int k = 0; k < instruction->outputs; k++) maker[instruction->out[k]] = i + 1;
  }
  for (int i = 0, edge = 0; i < block->count; i++) {
    const Instruction *instruction = &block->instructions[i];
    for (int k = 0; k < instruction->inputs; k++) {
      int64_t value = instruction->in[k];
      int from = value >= 0 ? maker[value] - 1 : -1;
      if (from < 0) continue;
      made.waits[i]++;
      made.edge_user[edge] = i;
      made.edge_next[edge] = made.first_edge[from];
      made.first_edge[from] = edge++;
    }
  }
  return made;
}

/* Put an instruction whose operands are planned in line, or plan it at once if it has no steps;
 * return whether it is planned. */
static int starts(Plan *plan, Schedule *schedule, int i) {
  const Instruction *instruction = &schedule->block->instructions[i];
  const Operator *op = instruction->op;
  schedule->waits[i] = READY;
  if (is_late(plan, instruction)) return 0;
  if (op->kind == ELEMENTWISE) {
    Array result;
    broadcast_shape(plan, instruction, &result);
    set_shape(plan, instruction->out[0], result.rank, result.shape);
  }
  if (op->kind == VIEW) op->plan(plan, instruction);
  else if (op->kind != CONTROL && is_known(plan, instruction)) fold(plan, instruction);
  else return schedule->ready[schedule->ready_count++] = i, 0;
  return 1;
}

/* Note that an instruction is planned, and start the users that have waited for it, depth first. */
static void mark_done(Plan *plan, Schedule *schedule, int i) {
  int *edges = schedule->edges, depth = 0; /* the next edge of each instruction that is done */
  schedule->waits[i] = DONE;
  edges[0] = schedule->first_edge[i];
  while (depth >= 0) {
    int edge = edges[depth];
    if (edge < 0) {
      depth--;
      continue;
    }
    edges[depth] = schedule->edge_next[edge];
    int user = schedule->edge_user[edge];
    if (--schedule->waits[user] || !starts(plan, schedule, user)) continue;
    schedule->waits[user] = DONE;
    edges[++depth] = schedule->first_edge[user];
  }
}

static int take(Schedule *schedule, int position) {
  int found = schedule->ready[position];
  schedule->ready_count--;
  memmove(schedule->ready + position, schedule->ready + position + 1,
          (size_t)(schedule->ready_count - position) * sizeof(int));
  return found;
}

/* Return the size of the group that an instruction can be in, -1 if it has steps of its own. */
static int64_t group_size(Plan *plan, const Instruction *instruction) {
  if (instruction->op->kind == ELEMENTWISE) return slot(plan, instruction->out[0])->array.size;
  int64_t taken = taken_elements(plan, instruction);
  /* The vector must be complete before the group. */
  return taken && root_of(plan, instruction->in[0])->place != NOWHERE ? taken : -1;
}

/* Whether an instruction can run in the steps of the group. */
static int joins(Plan *plan, const Instruction *instruction) {
  if (!plan->group.count) return 0;
  return group_size(plan, instruction) == plan->group.size ||
         sums_all(plan, instruction, plan->group.size);
}

/* Return the position in line of the next instruction: one that joins the group, one with steps of
 * its own, or the smallest; -1 if none is in line. */
static int choose(Plan *plan, const Schedule *schedule) {
  int with_steps = -1, smallest = -1;
  int64_t least = INT64_MAX;
  for (int k = 0; k < schedule->ready_count; k++) {
    const Instruction *instruction = &schedule->block->instructions[schedule->ready[k]];
    if (joins(plan, instruction)) return k;
    int64_t size = group_size(plan, instruction);
    if (size < 0 && with_steps < 0) with_steps = k;
    if (size >= 0 && size < least) least = size, smallest = k;
  }
  return with_steps >= 0 ? with_steps : smallest;
}

/* End the group, which gives its sums. */
static void end_group(Plan *plan, Schedule *schedule) {
  close_group(plan, &plan->group);
  for (int k = 0; k < schedule->sum_count; k++) {
    const Instruction *instruction = &schedule->block->instructions[schedule->sums[k]];
    int64_t parts = schedule->parts[k], out = instruction->out[0];
    if (parts != out) adds_parts(plan, out, parts);
  }
  int count = schedule->sum_count;
  schedule->sum_count = 0;
  for (int k = 0; k < count; k++) mark_done(plan, schedule, schedule->sums[k]);
}

/* Note the first step of an instruction, if it is one of the plan's own block. */
static void note_first_step(Plan *plan, const Block *block, int i, int step) {
  if (block == plan->block && step < plan->step_count + (plan->group.count > 0)) plan->first_step[i] = step;
}

static void plan_next(Plan *plan, Schedule *schedule, int position) {
  int i = take(schedule, position);
  const Block *block = schedule->block;
  const Instruction *instruction = &block->instructions[i];
  int64_t size = group_size(plan, instruction);
  if (size < 0 && joins(plan, instruction)) {
    note_first_step(plan, block, i, plan->step_count);
    schedule->sums[schedule->sum_count] = i;
    schedule->parts[schedule->sum_count++] = append_sum(plan, &plan->group, instruction);
    return;
  }
  if (size >= 0) {
    if (size != plan->group.size) close_group(plan, &plan->group);
    plan->group.size = size;
    if (instruction->op->kind == ELEMENTWISE) append(plan, &plan->group, instruction);
    else append_taken(plan, &plan->group, instruction);
    note_first_step(plan, block, i, plan->step_count);
  } else {
    int first = plan->step_count + (plan->group.count > 0); /* after the step of the open group */
    instruction->op->plan(plan, instruction);
    note_first_step(plan, block, i, first);
  }
  mark_done(plan, schedule, i);
}

void plan_block(Plan *plan, const Block *block, Steps *steps) {
  close_group(plan, &plan->group);
  Steps *outer = plan->steps;
  if (steps) {
    steps->first = NULL;
    steps->end = &steps->first;
    plan->steps = steps;
  }
  Schedule schedule = schedule_of(plan, block);
  for (int i = 0; i < block->count; i++) {
    if (!schedule.waits[i] && starts(plan, &schedule, i)) mark_done(plan, &schedule, i);
  }
  while (schedule.ready_count || schedule.sum_count) {
    int position = choose(plan, &schedule);
    int has_joined = position >= 0 && joins(plan, &block->instructions[schedule.ready[position]]);
    if (schedule.sum_count && !has_joined) end_group(plan, &schedule);
    else plan_next(plan, &schedule, position);
  }
  close_group(plan, &plan->group);
  Instruction *rest = memory(plan, (size_t)(block->count + 1) * sizeof *rest);
  int late = 0;
  for (int i = 0; i < block->count; i++) {
    if (schedule.waits[i] == DONE) continue;
    rest[late++] = block->instructions[i];
    if (block == plan->block) plan->first_step[i] = plan->step_count;
  }
  if (late) plan_late(plan, block, rest, late);
  plan->steps = outer;
}

Steps *into(Plan *plan, Steps *steps) {
  Steps *before = plan->steps;
  plan->steps = steps;
  return before;
}

int64_t begin_loop(Plan *plan) { return ++plan->time; }

/* Keep all that a loop reads from outside until its end. */
void end_loop(Plan *plan, int64_t begin) {
  int64_t end = ++plan->time;
  for (int i = 0; i < plan->values; i++) {
    Slot *given = &plan->slots[i];
    if (given->first < begin && given->last >= begin) given->last = end;
  }
}

/* Memory of the workspace. */

/* Sort by the first use; Shell's method, as the C library's takes much room in WebAssembly. */
static void sort_by_first_use(Slot **slots, int count) {
  int gap = 1;
  while (gap < count / 3) gap = 3 * gap + 1;
  for (; gap > 0; gap /= 3) {
    for (int i = gap; i < count; i++) {
      Slot *moved = slots[i];
      int at = i;
      for (; at >= gap && slots[at - gap]->first > moved->first; at -= gap) {
        slots[at] = slots[at - gap];
      }
      slots[at] = moved;
    }
  }
}

/* Place a value in the first gap between those that are in use at the same time. */
static int64_t position_for(Slot **live, int count, int64_t bytes) {
  int64_t position = 0;
  for (int i = 0; i < count; i++) {
    if (live[i]->position - position >= bytes) break;
    position = live[i]->position + live[i]->bytes;
  }
  return position;
}

static size_t lay_out(Plan *plan) {
  int count = 0, live_count = 0;
  int64_t total = 0;
  Slot **all = scratch(plan, (size_t)(plan->values + 1) * sizeof *all);
  Slot **live = scratch(plan, (size_t)(plan->values + 1) * sizeof *live);
  for (int i = 0; i < plan->values; i++) {
    Slot *given = &plan->slots[i];
    if (given->place == WORK && given->root == i && given->last >= 0) all[count++] = given;
  }
  sort_by_first_use(all, count);
  for (int i = 0; i < count; i++) {
    Slot *given = all[i];
    int64_t unit = given->bytes >= ALIGNMENT ? ALIGNMENT : 16;
    given->bytes = (given->bytes + unit) / unit * unit;
    int kept = 0;
    for (int k = 0; k < live_count; k++) {
      if (live[k]->last >= given->first) live[kept++] = live[k];
    }
    given->position = position_for(live, kept, given->bytes);
    int at = kept;
    for (; at > 0 && live[at - 1]->position > given->position; at--) live[at] = live[at - 1];
    live[at] = given;
    live_count = kept + 1;
    int64_t end = given->position + given->bytes;
    if (end > total) total = end;
  }
  if (total > PTRDIFF_MAX / 2) refuse(plan, "out of memory");
  return (size_t)total;
}

static void set_base(Plan *plan, char *memory) {
  char *base = memory + ALIGNMENT - (uintptr_t)memory % ALIGNMENT;
  if (base == plan->base) return;
  plan->base = base;
  for (int i = 0; i < plan->work_count; i++) *plan->work[i].where = base + plan->work[i].offset;
}

/* Set the addresses that are known, and keep those within the workspace, inputs and outputs. */
static void resolve(Plan *plan) {
  plan->work_bytes = lay_out(plan) + ALIGNMENT;
  plan->work = memory(plan, (size_t)(plan->address_count + 1) * sizeof *plan->work);
  for (int i = 0; i < plan->address_count; i++) {
    Address found = plan->addresses[i];
    Slot *given = &plan->slots[found.value];
    if (given->place == WORK) {
      found.offset += given->position;
      plan->work[plan->work_count++] = found;
    } else if (given->place == FIXED) {
      *found.where = (char *)given->array.data + found.offset;
    } else {
      found.value = given->place == INPUT ? given->index : ~given->index;
      plan->addresses[plan->bound_count++] = found;
    }
  }
  plan->bound = plan->addresses;
  if (plan->work_bytes > SHARED_BYTES) return;
  plan->bytes += plan->work_bytes;
  plan->workspace = malloc(plan->work_bytes);
  if (!plan->workspace) refuse(plan, "out of memory");
  set_base(plan, plan->workspace);
}

/* Give the memory in which an output lies as a view to the output itself, if it is as large. */
static int becomes_output(Plan *plan, const Slot *view, int output) {
  Slot *root = &plan->slots[view->root];
  if (root->place != WORK || view->offset || root->bytes != bytes_of(&view->array)) return 0;
  root->place = OUTPUT;
  root->index = output;
  return 1;
}

static void make(Plan *plan, const Array *inputs, const char *bases, const Array *results) {
  const Tape *tape = plan->tape;
  const Block *main = plan->block;
  plan->capacity = tape->values + 64;
  plan->slots = malloc((size_t)plan->capacity * sizeof *plan->slots);
  if (!plan->slots) refuse(plan, "out of memory");
  for (int i = 0; i < tape->values; i++) clear(slot(plan, i), i, (int)tape->dtypes[i], tape->uses[i]);
  plan->values = tape->values;
  for (int i = 0; i < tape->constants; i++) {
    Slot *made = slot(plan, tape->constant_values[i]);
    made->array = tape->constant_arrays[i];
    made->place = FIXED;
    made->known = 1;
  }
  plan->inputs = memory(plan, (size_t)(main->inputs + 1) * sizeof *plan->inputs);
  plan->results = memory(plan, (size_t)(main->outputs + 1) * sizeof *plan->results);
  plan->bases = memory(plan, (size_t)main->inputs + 1);
  copy_bytes(plan->bases, bases, main->inputs);
  for (int i = 0; i < main->inputs; i++) {
    Slot *made = slot(plan, main->in[i]);
    if (inputs[i].dtype != made->array.dtype) refuse(plan, "an input has another type");
    plan->inputs[i] = inputs[i];
    set_shape(plan, main->in[i], inputs[i].rank, inputs[i].shape);
    made->index = i;
    made->known = bases[i] != SIZES_ONLY;
    made->place = made->known ? FIXED : INPUT;
    if (bases[i] == SAME_ELEMENTS) {
      int64_t bytes = bytes_of(&inputs[i]);
      plan->inputs[i].data = memory(plan, (size_t)bytes);
      copy_bytes(plan->inputs[i].data, inputs[i].data, bytes);
    }
    made->array.data = plan->inputs[i].data;
  }
  for (int i = 0; i < main->outputs; i++) {
    slot(plan, main->out[i])->output = i;
    if (!results) continue;
    int64_t like = new_value(plan, results[i].dtype, results[i].rank, results[i].shape);
    slot(plan, main->out[i])->expected = (int)like;
  }
  plan->first_step = memory(plan, (size_t)(main->count + 1) * sizeof(int));
  for (int i = 0; i < main->count; i++) plan->first_step[i] = -1;
  plan_block(plan, main, &plan->main);
  plan->steps = &plan->main;
  for (int i = 0; i < main->outputs; i++) {
    require_all_rows(plan, main->out[i]);
    Slot *made = slot(plan, main->out[i]);
    plan->results[i] = made->array;
    int is_written = made->place == OUTPUT && made->index == i;
    if (is_written || becomes_output(plan, made, i)) continue;
    int64_t copy = new_value(plan, made->array.dtype, made->array.rank, made->array.shape);
    slot(plan, copy)->output = i;
    copies(plan, copy, main->out[i]);
  }
  resolve(plan);
}

/* Free what only the making of a plan needs. */
static void free_scratch(Plan *plan) {
  free(plan->group.elements);
  free(plan->folded.elements);
  free(plan->slots);
  plan->group.elements = plan->folded.elements = NULL;
  plan->slots = NULL;
  free_chunks(&plan->scratch);
}

Plan *make_plan(const Tape *tape, const Block *block, const Array *inputs, const char *bases,
                const Array *results, const char **problem) {
  Plan *plan = calloc(1, sizeof *plan);
  *problem = "out of memory";
  if (!plan) return NULL;
  plan->tape = tape;
  plan->block = block;
  if (!IS_REFUSED(plan)) {
    make(plan, inputs, bases, results);
    free_scratch(plan);
    return plan;
  }
  *problem = plan->problem;
  free_plan(plan);
  return NULL;
}

size_t plan_bytes(const Plan *plan) { return plan->bytes; }

void free_plan(Plan *plan) {
  if (!plan) return;
  free_scratch(plan);
  free_late(plan->lates);
  free_chunks(&plan->chunks);
  free(plan->addresses);
  free(plan->workspace);
  free(plan);
}

int plan_fits(const Plan *plan, const Array *inputs) {
  for (int i = 0; i < plan->block->inputs; i++) {
    const Array *known = &plan->inputs[i], *given = &inputs[i];
    if (!same_shape(known, given) || known->dtype != given->dtype) return 0;
    if (plan->bases[i] == SAME_MEMORY && known->data != given->data) return 0;
    if (plan->bases[i] != SAME_ELEMENTS) continue;
    if (memcmp(known->data, given->data, (size_t)bytes_of(known))) return 0;
  }
  return 1;
}

const Array *plan_output(const Plan *plan, int i) {
  return &plan->results[i];
}

const char *run_steps(Step *step) {
  for (; step; step = step->next) {
    const char *problem = step->run(step);
    if (problem) return problem;
  }
  return NULL;
}

static void bind(Plan *plan, const Array *inputs, void *const *outputs) {
  for (int i = 0; i < plan->bound_count; i++) {
    Address bound = plan->bound[i];
    char *base = bound.value >= 0 ? inputs[bound.value].data : outputs[~bound.value];
    *bound.where = base + bound.offset;
  }
}

const char *run_plan(Plan *plan, const Array *inputs, void *const *outputs) {
  bind(plan, inputs, outputs);
  if (plan->workspace) return run_steps(plan->main.first);
  Workspace *workspace = take_workspace(plan->work_bytes);
  if (!workspace) return "out of memory";
  set_base(plan, memory_of(workspace));
  const char *problem = run_steps(plan->main.first);
  give_back(workspace);
  return problem;
}

#ifndef __wasm__
int step_count(const Plan *plan) { return plan->step_count; }
const int *first_steps(const Plan *plan) { return plan->first_step; }
int late_plan_count(const Plan *plan) { return plans_of(plan->lates); }

const char *time_plan(Plan *plan, const Array *inputs, void *const *outputs, Clock *clock,
                      int64_t *times) {
  const char *problem = begin_plan(plan, inputs, outputs);
  for (Step *step = plan->main.first; !problem && step; step = step->next) {
    int64_t start = clock();
    problem = step->run(step);
    int64_t taken = clock() - start;
    if (taken < *times) *times = taken;
    times++;
  }
  end_plan(plan);
  return problem;
}
#endif

const char *begin_plan(Plan *plan, const Array *inputs, void *const *outputs) {
  bind(plan, inputs, outputs);
  if (!plan->workspace) {
    plan->taken = take_workspace(plan->work_bytes);
    if (!plan->taken) return "out of memory";
    set_base(plan, memory_of(plan->taken));
  }
  plan->at = plan->main.first;
  plan->progress = (Progress){0, 0};
  return NULL;
}

void end_plan(Plan *plan) {
  if (plan->taken) give_back(plan->taken);
  plan->taken = NULL;
}

int has_more(const Plan *plan) { return plan->at != NULL; }
Progress progress_of(const Plan *plan) { return plan->progress; }

const char *go_on(Plan *plan) {
  if (!plan->at) return NULL;
  const char *problem = run_part(plan->at, &plan->progress);
  if (!plan->progress.total) plan->at = plan->at->next;
  return problem;
}

const char *peek(Plan *plan) {
  if (!plan->progress.total) return NULL;
  size_t bytes = plan->work_bytes - ALIGNMENT;
  char *kept = malloc(bytes);
  if (!kept) return "out of memory";
  memcpy(kept, plan->base, bytes);
  const char *problem = run_steps(plan->at->next);
  memcpy(plan->base, kept, bytes);
  free(kept);
  return problem;
}
