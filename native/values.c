/* The values of a plan: their sizes and memory, known integers, and the addresses that steps have. */
#include <stdlib.h>

#include "planning.h"

#ifndef __wasm__
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

void own(Plan *plan, Owned *owned) {
  owned->next = plan->owned;
  plan->owned = owned;
}

const Owned *owned_by(const Plan *plan) { return plan->owned; }

void free_chunks(Chunk **chunks) {
  while (*chunks) {
    Chunk *next = (*chunks)->next;
    free(*chunks);
    *chunks = next;
  }
}

void *grown(Plan *plan, void *array, int count, int *capacity, size_t bytes) {
  if (count < *capacity) return array;
  *capacity = *capacity ? 2 * *capacity : 16;
  /* `realloc` would be 700 bytes of the module of WebAssembly. */
  void *made = malloc((size_t)*capacity * bytes);
  if (!made) refuse(plan, "out of memory");
  copy_bytes(made, array, count * (int64_t)bytes);
  free(array);
  return made;
}

Slot *slot(Plan *plan, int64_t value) { return &plan->slots[value]; }
int has_operand(const Instruction *instruction, int i) {
  return i < instruction->inputs && instruction->in[i] >= 0;
}
Array *operand(Plan *plan, const Instruction *instruction, int i) {
  if (!has_operand(instruction, i)) refuse(plan, "an operand is missing");
  return &plan->slots[instruction->in[i]].array;
}
int64_t bytes_of_one(Plan *plan, int64_t value) {
  return (int64_t)bytes_of_element(slot(plan, value)->array.dtype);
}
void require_all_rows(Plan *plan, int64_t value) {
  if (slot(plan, value)->length >= 0) refuse(plan, "the size of a result depends on values");
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

void *fix(Plan *plan, int64_t value) {
  Slot *made = slot(plan, value);
  made->place = FIXED;
  made->known = 1;
  return made->array.data = memory(plan, (size_t)bytes_of(&made->array));
}

void touch(Plan *plan, int64_t value, int64_t time) {
  extend(root_of(plan, value), time);
}

void address(Plan *plan, char **where, int64_t value, int64_t offset) {
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

void place(Plan *plan, int64_t value) {
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
