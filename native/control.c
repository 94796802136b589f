/* Loops and branches: steps that run other steps. */
#include <math.h>

#include "planners.h"

/* A part of memory that is copied once in each iteration; the stride is that of the long side. */
typedef struct {
  char *to;
  const char *from;
  int64_t bytes, stride;
  int dtype;
} Move;

typedef struct {
  Steps body;
  Move *slices, *results, *states;
  int slice_count, result_count, state_count;
  int64_t trip;              /* number of iterations, if `count` is NULL */
  const char *count;         /* integer that has it */
  const char *starts, *goes_on; /* conditions, NULL if they are always true */
  char *number;              /* of the iteration */
  char *length;              /* number of iterations that were done, NULL if it is `trip` */
  int64_t at, end;           /* the next iteration of the present run, and the last one's end */
} Loop;

static inline void move(char *to, const char *from, int64_t bytes) {
  if (bytes == 8) memcpy(to, from, 8);
  else copy_bytes(to, from, bytes);
}

static void begin_iterations(Loop *loop) {
  loop->at = 0;
  loop->end = loop->count ? *(const int64_t *)loop->count : loop->trip;
  if (loop->starts && !*loop->starts) loop->end = 0;
}

static const char *run_iteration(Loop *loop) {
  int64_t i = loop->at++;
  if (loop->number) memcpy(loop->number, &i, sizeof i);
  for (int k = 0; k < loop->slice_count; k++) {
    const Move *slice = &loop->slices[k];
    move(slice->to, slice->from + i * slice->stride, slice->bytes);
  }
  const char *problem = run_steps(loop->body.first);
  if (problem) return problem;
  for (int k = 0; k < loop->result_count; k++) {
    const Move *result = &loop->results[k];
    move(result->to + i * result->stride, result->from, result->bytes);
  }
  if (loop->goes_on && !*loop->goes_on) loop->end = loop->at;
  for (int k = 0; k < loop->state_count; k++) {
    move(loop->states[k].to, loop->states[k].from, loop->states[k].bytes);
  }
  return NULL;
}

static void end_iterations(Loop *loop) {
  if (loop->length) memcpy(loop->length, &loop->at, sizeof loop->at);
}

static const char *run_loop(Step *step) {
  Loop *loop = step->extra;
  begin_iterations(loop);
  while (loop->at < loop->end) {
    const char *problem = run_iteration(loop);
    if (problem) return problem;
  }
  end_iterations(loop);
  return NULL;
}

/* Fill the rows that a loop stacks with NaN, or zero, which show that they are missing. */
static void clear_results(const Loop *loop) {
  for (int k = 0; k < loop->result_count; k++) {
    const Move *result = &loop->results[k];
    char *first = result->stride < 0 ? result->to + (loop->end - 1) * result->stride : result->to;
    int64_t bytes = loop->end > 0 && loop->end <= loop->trip ? loop->end * result->bytes : 0;
    if (result->dtype == FLOAT64) {
      for (int64_t i = 0; i < bytes / 8; i++) ((double *)first)[i] = NAN;
    } else if (result->dtype == FLOAT32) {
      for (int64_t i = 0; i < bytes / 4; i++) ((float *)first)[i] = NAN;
    } else if (bytes) {
      memset(first, 0, (size_t)bytes);
    }
  }
}

const char *run_part(Step *step, Progress *progress) {
  if (step->run != run_loop) return step->run(step);
  Loop *loop = step->extra;
  if (!progress->total) {
    begin_iterations(loop);
    clear_results(loop);
  }
  const char *problem = loop->at < loop->end ? run_iteration(loop) : NULL;
  progress->done = loop->at;
  progress->total = loop->at < loop->end ? loop->end : 0;
  /* Also between iterations, where `peek` reads the rows so far. */
  if (!problem) end_iterations(loop);
  return problem;
}

static const Block *block_at(Plan *plan, int64_t i) { return &tape_of(plan)->block[i]; }

static int64_t bytes_of_value(Plan *plan, int64_t value) {
  return slot(plan, value)->array.size * bytes_of_one(plan, value);
}

/* Give a state of a loop memory of its own, which starts with the initial value. */
static void begin_state(Plan *plan, int64_t state, int64_t initial) {
  Array given = slot(plan, initial)->array;
  set_shape(plan, state, given.rank, given.shape);
  copies(plan, state, initial);
}

/* Return a value to copy to a state: a copy where it lies in a state, which may be overwritten. */
static int64_t source_of(Plan *plan, int64_t next, int count, const int64_t *states) {
  for (int k = 0; k < count; k++) {
    if (slot(plan, next)->root != states[k]) continue;
    Array shape = slot(plan, next)->array;
    int64_t made = new_value(plan, shape.dtype, shape.rank, shape.shape);
    copies(plan, made, next);
    return made;
  }
  return next;
}

/* Write the next value of each state over the present one, when all steps of the body are done. */
static void next_states(Plan *plan, Loop *loop, int count, const int64_t *states,
                        const int64_t *next) {
  loop->states = memory(plan, (size_t)(count + 1) * sizeof *loop->states);
  int64_t *sources = memory(plan, (size_t)(count + 1) * sizeof *sources);
  for (int i = 0; i < count; i++) {
    require_all_rows(plan, next[i]);
    const Slot *state = slot(plan, states[i]), *from = slot(plan, next[i]);
    if (!same_shape(&state->array, &from->array)) refuse(plan, "a state changes its size");
    int stays = from->root == states[i] && !from->offset;
    sources[i] = stays ? states[i] : source_of(plan, next[i], count, states);
  }
  for (int i = 0; i < count; i++) {
    if (sources[i] == states[i]) continue;
    Move *made = &loop->states[loop->state_count++];
    made->bytes = bytes_of_value(plan, sources[i]);
    reads(plan, &made->from, sources[i], 0);
    writes(plan, &made->to, states[i], 0);
  }
}

/* Stack a value of each iteration in a result, which is in use from the first iteration on. */
static void stack_results(Plan *plan, Loop *loop, int64_t begin, int count, const int64_t *rows,
                          const int64_t *results, const int64_t *are_reversed, int64_t trip) {
  loop->results = memory(plan, (size_t)(count + 1) * sizeof *loop->results);
  for (int i = 0; i < count; i++) {
    require_all_rows(plan, rows[i]);
    Array row = slot(plan, rows[i])->array;
    if (row.rank == MOST_AXES) refuse(plan, "a result of a loop has too many axes");
    memmove(row.shape + 1, row.shape, (size_t)row.rank * sizeof *row.shape);
    row.shape[0] = trip;
    set_shape(plan, results[i], row.rank + 1, row.shape);
    Move *made = &loop->results[loop->result_count++];
    made->bytes = bytes_of_value(plan, rows[i]);
    made->dtype = row.dtype;
    made->stride = are_reversed && are_reversed[i] ? -made->bytes : made->bytes;
    reads(plan, &made->from, rows[i], 0);
    writes(plan, &made->to, results[i], made->stride < 0 ? (trip - 1) * made->bytes : 0);
    touch(plan, results[i], begin);
  }
}

/* Plan the body, then all that each iteration copies. */
static void plan_body(Plan *plan, Loop *loop, const Block *body, int64_t begin, int states,
                      const int64_t *state, const int64_t *next, int results,
                      const int64_t *result, const int64_t *are_reversed, int64_t trip) {
  for (int i = 0; i < states; i++) slot(plan, next[i])->expected = (int)state[i];
  plan_block(plan, body, &loop->body);
  Steps *outer = into(plan, &loop->body);
  next_states(plan, loop, states, state, next);
  stack_results(plan, loop, begin, results, next + states, result, are_reversed, trip);
  into(plan, outer);
  end_loop(plan, begin);
}

/* attributes: states, scanned arrays, body, then whether each array and each result is reversed */
void plan_scan(Plan *plan, const Instruction *instruction) {
  int states = (int)instruction->attribute[0], arrays = (int)instruction->attribute[1];
  const Block *body = block_at(plan, instruction->attribute[2]);
  const int64_t *are_reversed = instruction->attribute + 3;
  int results = instruction->outputs - states;
  int64_t trip = -1;
  for (int i = 0; i < arrays; i++) {
    const Array *given = operand(plan, instruction, states + i);
    if (!given->rank || (trip >= 0 && given->shape[0] != trip)) refuse(plan, "lengths of a Scan differ");
    trip = given->shape[0];
  }
  if (!trip) refuse(plan, "a Scan has no steps");
  for (int i = 0; i < states; i++) begin_state(plan, body->in[i], instruction->in[i]);
  Step *step = emit(plan, run_loop);
  Loop *loop = memory(plan, sizeof *loop);
  step->extra = loop;
  loop->trip = trip;
  int64_t begin = begin_loop(plan);
  loop->slices = memory(plan, (size_t)arrays * sizeof *loop->slices);
  for (int i = 0; i < arrays; i++) {
    Array given = *operand(plan, instruction, states + i);
    int64_t slice = body->in[states + i];
    set_shape(plan, slice, given.rank - 1, given.shape + 1);
    Move *made = &loop->slices[loop->slice_count++];
    made->bytes = bytes_of_value(plan, slice);
    made->stride = are_reversed[i] ? -made->bytes : made->bytes;
    reads(plan, &made->from, instruction->in[states + i], are_reversed[i] ? (trip - 1) * made->bytes : 0);
    writes(plan, &made->to, slice, 0);
  }
  plan_body(plan, loop, body, begin, states, body->in, body->out, results, instruction->out + states,
            are_reversed + arrays, trip);
  for (int i = 0; i < states; i++) {
    const Array *last = &slot(plan, body->in[i])->array;
    set_shape(plan, instruction->out[i], last->rank, last->shape);
    shares(plan, instruction->out[i], body->in[i], 0);
  }
}

static int is_known_true(Plan *plan, int64_t value) {
  const Slot *given = slot(plan, value);
  const char *data = slot(plan, given->root)->array.data;
  require_one(plan, value);
  return given->known && data[given->offset];
}

/* attributes: states, body */
void plan_loop(Plan *plan, const Instruction *instruction) {
  int states = (int)instruction->attribute[0], results = instruction->outputs - states;
  const Block *body = block_at(plan, instruction->attribute[1]);
  int64_t trip = INT64_MAX;
  int counts = has_operand(instruction, 0), asks = has_operand(instruction, 1);
  int is_counted = counts && slot(plan, instruction->in[0])->known;
  if (counts) require_one(plan, instruction->in[0]);
  if (is_counted) trip = known_integer(plan, instruction->in[0]);
  trip = trip < 0 ? 0 : trip;
  if (asks && is_known_true(plan, instruction->in[1])) asks = 0;
  if (results && (!counts || !trip)) refuse(plan, "the length of a result depends on values");
  for (int i = 0; i < states; i++) begin_state(plan, body->in[2 + i], instruction->in[2 + i]);
  Step *step = emit(plan, run_loop);
  Loop *loop = memory(plan, sizeof *loop);
  step->extra = loop;
  loop->trip = trip;
  if (counts && !is_counted) reads(plan, &loop->count, instruction->in[0], 0);
  if (asks) reads(plan, &loop->starts, instruction->in[1], 0);
  int64_t begin = begin_loop(plan);
  set_shape(plan, body->in[0], 0, NULL);
  writes(plan, &loop->number, body->in[0], 0);
  set_shape(plan, body->in[1], 0, NULL);
  *(char *)fix(plan, body->in[1]) = 1;
  slot(plan, body->out[0])->expected = (int)body->in[1];
  plan_body(plan, loop, body, begin, states, body->in + 2, body->out + 1, results,
            instruction->out + states, NULL, trip);
  int may_stop = !is_known_true(plan, body->out[0]);
  if (may_stop) reads(plan, &loop->goes_on, body->out[0], 0);
  if (results && (asks || may_stop)) {
    int64_t length = new_value(plan, INT64, 0, NULL);
    writes(plan, &loop->length, length, 0);
    for (int i = 0; i < results; i++) slot(plan, instruction->out[states + i])->length = (int)length;
  }
  for (int i = 0; i < states; i++) {
    const Array *last = &slot(plan, body->in[2 + i])->array;
    set_shape(plan, instruction->out[i], last->rank, last->shape);
    shares(plan, instruction->out[i], body->in[2 + i], 0);
  }
}

typedef struct {
  const char *condition;
  Steps steps[2]; /* where it is false, and where it is true */
} Branches;

static const char *run_branch(Step *step) {
  Branches *branches = step->extra;
  return run_steps(branches->steps[*branches->condition != 0].first);
}

/* Results of a branch have the sizes that are expected of those of the If. */
static void expect_results(Plan *plan, const Block *block, const Instruction *instruction) {
  for (int i = 0; i < block->outputs; i++) {
    int expected = slot(plan, instruction->out[i])->expected;
    if (expected >= 0) slot(plan, block->out[i])->expected = expected;
  }
}

/* attributes: the blocks where the condition is true, and where it is false */
void plan_if(Plan *plan, const Instruction *instruction) {
  require_one(plan, instruction->in[0]);
  if (slot(plan, instruction->in[0])->known) {
    int64_t chosen = instruction->attribute[!is_known_true(plan, instruction->in[0])];
    const Block *block = block_at(plan, chosen);
    expect_results(plan, block, instruction);
    plan_block(plan, block, NULL);
    for (int i = 0; i < instruction->outputs; i++) {
      require_all_rows(plan, block->out[i]);
      const Array *result = &slot(plan, block->out[i])->array;
      set_shape(plan, instruction->out[i], result->rank, result->shape);
      shares(plan, instruction->out[i], block->out[i], 0);
    }
    return;
  }
  Step *step = emit(plan, run_branch);
  Branches *branches = memory(plan, sizeof *branches);
  step->extra = branches;
  reads(plan, &branches->condition, instruction->in[0], 0);
  for (int branch = 1; branch >= 0; branch--) {
    const Block *block = block_at(plan, instruction->attribute[!branch]);
    expect_results(plan, block, instruction);
    plan_block(plan, block, &branches->steps[branch]);
    Steps *outer = into(plan, &branches->steps[branch]);
    for (int i = 0; i < instruction->outputs; i++) {
      require_all_rows(plan, block->out[i]);
      Array result = slot(plan, block->out[i])->array;
      if (!branch && !same_shape(&result, &slot(plan, instruction->out[i])->array)) {
        refuse(plan, "the size of a result depends on values");
      }
      set_shape(plan, instruction->out[i], result.rank, result.shape);
      copies(plan, instruction->out[i], block->out[i]);
    }
    into(plan, outer);
  }
}
