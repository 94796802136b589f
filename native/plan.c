/* Plans: made for some inputs, and run. */
#include <stdlib.h>

#include "planning.h"

#ifdef __wasm__
#define IS_REFUSED(plan) 0
#else
#define IS_REFUSED(plan) setjmp((plan)->refusal)
#endif

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
  lay_out(plan);
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
  for (Owned *owned = plan->owned; owned; owned = owned->next) owned->release(owned);
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

static void bind(Plan *plan, const Array *inputs, void *const *outputs) {
  for (int i = 0; i < plan->bound_count; i++) {
    Address bound = plan->bound[i];
    char *base = bound.value >= 0 ? inputs[bound.value].data : outputs[~bound.value];
    *bound.where = base + bound.offset;
  }
}

const char *begin_plan(Plan *plan, const Array *inputs, void *const *outputs) {
  bind(plan, inputs, outputs);
  plan->at = plan->main.first;
  plan->progress = (Progress){0, 0};
  return open_workspace(plan);
}

void end_plan(Plan *plan) { close_workspace(plan); }

const char *run_plan(Plan *plan, const Array *inputs, void *const *outputs) {
  const char *problem = begin_plan(plan, inputs, outputs);
  if (!problem) problem = run_steps(plan->main.first);
  close_workspace(plan);
  return problem;
}

#ifndef __wasm__
int count_steps(const Plan *plan) { return plan->step_count; }
const int *first_steps(const Plan *plan) { return plan->first_step; }

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
