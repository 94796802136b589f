/* Groups: elementwise instructions that run together, block by block. */
#include "chains.h"
#include "planning.h"
#include "threads.h"

enum { LOCAL_BYTES = BLOCK_ELEMENTS * sizeof(double) };

int threads_of(const Plan *plan) { return plan->tape->threads; }

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
  Array given = plan->slots[value].array;
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
    plan->slots[other->value[0]].uses++;
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
  plan->slots[value].group_uses++;
  return made;
}

static int index_of(const Plan *plan, const Instruction *instruction) {
  return (int)(instruction->op - plan->tape->operators->all);
}

static const ElementKernel *kernel_for(Plan *plan, const Instruction *instruction) {
  int op = index_of(plan, instruction), typed_by = op == ELEMENTWISE_Where;
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

void append(Plan *plan, Group *group, const Instruction *instruction) {
  const ElementKernel *kernel = kernel_for(plan, instruction);
  int64_t value[4] = {instruction->out[0], -1, -1, -1};
  const Array result = plan->slots[value[0]].array;
  int numbers = 0;
  for (int i = 0; i < instruction->inputs; i++) {
    value[i + 1] = stretched(plan, group, instruction->in[i], &result);
    plan->slots[value[i + 1]].group_uses++;
    if (result.size != 1 && plan->slots[value[i + 1]].array.size == 1) numbers |= 1 << i;
  }
  Element *element = next_element(plan, group);
  memcpy(element->value, value, sizeof value);
  element->op = index_of(plan, instruction);
  element->numbers = numbers;
  element->run = run_of(kernel, instruction->inputs, numbers, result.size == 1);
}

int64_t append_sum(Plan *plan, Group *group, const Instruction *instruction, int op) {
  int64_t from = instruction->in[0], blocks = block_index(group->size);
  int dtype = plan->slots[from].array.dtype;
  int64_t to = blocks > 1 ? new_value(plan, dtype, 1, &blocks) : instruction->out[0];
  Element *element = next_element(plan, group);
  element->op = op;
  element->value[0] = to;
  element->value[1] = from;
  plan->slots[from].group_uses++;
  return to;
}

static void run_taken(const Element *element, int64_t start, int64_t count) {
  const int64_t *offset = (const int64_t *)element->extra + start;
  copy_elements(part_at(element, 0, start), element->at[1], offset, count, element->value[2]);
}

void append_taken(Plan *plan, Group *group, const Instruction *instruction, const int64_t *offsets) {
  Element *element = next_element(plan, group);
  element->run = run_taken;
  element->op = TAKEN;
  element->value[0] = instruction->out[0];
  element->value[1] = instruction->in[0];
  element->value[2] = bytes_of_element(plan->slots[instruction->in[0]].array.dtype);
  element->extra = (void *)offsets;
  plan->slots[instruction->in[0]].group_uses++;
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

/* Run the blocks between two elements of arrays of a size. */
static void run_between(Element *first, Element *end, int64_t size, int64_t start, int64_t stop) {
  for (int64_t count; start < stop; start += count) {
    count = block_elements(size - start);
    for (Element *element = first; element < end; element++) run_from(element, start, count);
  }
}

static const char *run_blocks(Step *step) {
  Element *first = step->extra, *end = first + step->n[1];
  run_between(first, end, step->n[0], 0, step->n[0]);
  for (Element *element = first; element < end; element++) rewind_element(element, step->n[0]);
  return division(step);
}

#ifndef __wasm__

/* The blocks of a group, which are divided among threads. */
typedef struct {
  Element *elements;
  int64_t count, size, bytes; /* the bytes of a copy of the elements with their chains */
  int parts;
  char *copies;
} Divided;

static int64_t bytes_with_chains(const Element *element, int64_t count) {
  int64_t bytes = count * (int64_t)sizeof *element;
  for (; count--; element++) {
    const Chain *chain = element->extra;
    if (element->op != CHAIN) continue;
    bytes += (int64_t)sizeof *chain + chain->length * (int64_t)sizeof *chain->links;
    bytes += chain->total_count * (int64_t)sizeof *chain->totals;
  }
  return bytes;
}

static void *copied(char **to, const void *from, size_t bytes) {
  void *made = memcpy(*to, from, bytes);
  *to += bytes;
  return made;
}

/* Copy a chain for a part, whose blocks and sums have memory of their own. */
static Chain *chain_of_part(char **to, const Chain *given, int64_t offset) {
  Chain *chain = copied(to, given, sizeof *given);
  chain->totals = copied(to, given->totals, (size_t)given->total_count * sizeof *given->totals);
  chain->links = copied(to, given->links, (size_t)given->length * sizeof *given->links);
  int total = 0;
  for (Link *link = chain->links; link->code != END; link++) {
    if (link->is_local) link->at += offset;
    if (adds_up(link->code)) link->at = chain->totals[total++].lanes;
  }
  return chain;
}

static Element *elements_of_part(const Divided *divided, int part) {
  char *to = divided->copies + part * divided->bytes;
  const int64_t offset = part * (int64_t)LOCAL_BYTES;
  Element *made = copied(&to, divided->elements, (size_t)divided->count * sizeof *made);
  for (Element *element = made; element < made + divided->count; element++) {
    for (int i = 0; i < 4; i++) {
      if (element->locals >> i & 1) element->at[i] += offset;
    }
    if (element->op == CHAIN) element->extra = chain_of_part(&to, element->extra, offset);
  }
  return made;
}

/* Return the first element of a part, where all parts together have the blocks of one. */
static int64_t begin_of_part(const Divided *divided, int part) {
  int64_t blocks = (divided->size / BLOCK_ELEMENTS + divided->parts - 1) / divided->parts;
  int64_t begin = part * blocks * BLOCK_ELEMENTS;
  int is_end = part == divided->parts || begin > divided->size - BLOCK_ELEMENTS / 2;
  return part && is_end ? divided->size : begin;
}

static void run_part_of_blocks(void *of, int part) {
  const Divided *divided = of;
  Element *first = elements_of_part(divided, part);
  run_between(first, first + divided->count, divided->size, begin_of_part(divided, part),
              begin_of_part(divided, part + 1));
}

static const char *run_divided(Step *step) {
  Divided *divided = step->extra;
  run_parts(run_part_of_blocks, divided, divided->parts);
  return division(step);
}

/* Divide a step among threads. */
static void divide(Plan *plan, const Group *group, Step *step) {
  Divided *divided = memory(plan, sizeof *divided);
  *divided = (Divided){step->extra, step->n[1], step->n[0], 0, group->parts, NULL};
  divided->bytes = bytes_with_chains(divided->elements, divided->count);
  divided->copies = memory(plan, (size_t)(group->parts * divided->bytes));
  step->run = run_divided;
  step->extra = divided;
}

/* Return the number of parts of a group: an operation takes a nanosecond or more for an element,
 * unless it is in a chain. */
static int parts_of(const Plan *plan, const Group *group) {
  int is_divided = !plan->folds && group->size > BLOCK_ELEMENTS;
  return is_divided ? parts_of_work(group->size * group->count / 2, plan->tape->threads) : 1;
}
#else
static void divide(Plan *plan, const Group *group, Step *step) { (void)plan, (void)group, (void)step; }
static int parts_of(const Plan *plan, const Group *group) { return (void)plan, (void)group, 1; }
#endif

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
  Slot *given = &plan->slots[value];
  int is_blocked = group->size > BLOCK_ELEMENTS, is_array = given->array.size == group->size;
  if (is_result) {
    given->is_local = !plan->folds && is_blocked && is_array && given->place == NOWHERE &&
                      given->group_uses == given->uses && given->output < 0;
    place(plan, value);
    if (given->is_local) {
      given->bytes = group->parts > 1
                         ? group->parts * (int64_t)LOCAL_BYTES
                         : BLOCK_ELEMENTS * (int64_t)bytes_of_element(given->array.dtype);
    }
  } else if (root_of(plan, value)->place == NOWHERE) {
    refuse(plan, "a value is read before it is written");
  }
  *step = is_array && !given->is_local ? (int64_t)bytes_of_element(given->array.dtype) : 0;
  Slot *root = root_of(plan, value);
  /* Parts that run at once are at different elements. */
  int is_short = (given->is_local && group->parts == 1) || !is_blocked;
  extend(root, is_short ? plan->time : group->end);
  if (!is_short) extend(root, group->begin);
  address(plan, at, value, 0);
}

static void set_places(Plan *plan, const Group *group, Element *element) {
  if (element->op == CHAIN) {
    const Chain *chain = element->extra;
    for (Link *link = chain->links; link->code != END; link++) {
      if (link->value < 0) continue;
      set_place(plan, group, link->value, link->code == STORE, &link->at, &link->step);
      link->is_local = plan->slots[link->value].is_local;
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
    element->locals |= plan->slots[element->value[k]].is_local << k;
  }
  if (is_moved) element->step[1] = 0;
}

void close_group(Plan *plan, Group *group) {
  if (!group->count) return;
  int given = group->count, count = given;
  Step *step = append_step(plan, group->size > BLOCK_ELEMENTS ? run_blocks : run_once);
  group->parts = parts_of(plan, group);
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
  if (group->parts > 1) divide(plan, group, step);
  for (int i = 0; i < given; i++) {
    const Element *element = &group->elements[i];
    for (int k = 0; k < (element->op == BROADCAST || element->op == TAKEN ? 2 : 4); k++) {
      if (element->value[k] >= 0) plan->slots[element->value[k]].group_uses = 0;
    }
  }
}

Step *emit(Plan *plan, Run run) {
  if (!plan->folds) close_group(plan, &plan->group);
  return append_step(plan, run);
}

static const char *run_copy(Step *step) {
  copy_bytes(step->out, step->in[0], step->n[0]);
  return NULL;
}

void copies(Plan *plan, int64_t out, int64_t in) {
  Step *step = emit(plan, run_copy);
  reads(plan, &step->in[0], in, 0);
  writes(plan, &step->out, out, 0);
  step->n[0] = bytes_of(&plan->slots[in].array);
}

static const char *run_layout(Step *step) {
  copy_layout(step->out, step->in[0], step->extra, (size_t)step->n[1], 0, step->n[0]);
  return NULL;
}

void copies_layout(Plan *plan, int64_t out, int64_t out_offset, int64_t in, int64_t in_offset,
                   const Layout *layout, int64_t count) {
  if (!count) return;
  Step *step = emit(plan, run_layout);
  Layout *kept = memory(plan, sizeof *kept);
  *kept = *layout;
  step->extra = kept;
  reads(plan, &step->in[0], in, in_offset);
  writes(plan, &step->out, out, out_offset);
  step->n[0] = count;
  step->n[1] = bytes_of_one(plan, in);
}
