/* The time of a tape and of its instructions, for `explain` of Python. */
#ifndef __wasm__
#include <stdlib.h>
#include <time.h>

#include "operators.h"
#include "runner.h"
#include "runtime_api.h"

static int64_t now(void) {
  struct timespec time;
  timespec_get(&time, TIME_UTC);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Results of a run; the memory of the run before is released. */
static const char *allocate(void *results, int i, const Array *result, void **data) {
  void **made = results;
  free(made[i]);
  *data = made[i] = malloc((size_t)result->size * bytes_of_element(result->dtype) + 1);
  return *data ? NULL : "out of memory";
}

/* Run a tape as a session does, and return the least time of a call. */
static int64_t time_runs(Runner *runner, const Array *inputs, void **outputs, void **made, int calls,
                         const char **problem) {
  int64_t least = INT64_MAX;
  *problem = NULL;
  for (int i = 0; !*problem && i <= calls; i++) { /* the first call makes plans */
    int64_t start = now();
    *problem = run_tape(runner, inputs, allocate, made, outputs);
    int64_t taken = now() - start;
    if (i && taken < least) least = taken;
  }
  return least;
}

/* Give each instruction the least time of its steps. Instructions of one loop over elements share
 * a step, which counts for the first of them: `first` is its index, -1 without steps. */
static const char *time_instructions(Plan *plan, const Block *block, const Array *inputs,
                                     void **outputs, int calls, int64_t *times, int *first) {
  int steps = count_steps(plan);
  int64_t *own = malloc(((size_t)steps + 1) * sizeof *own);
  int *owner = malloc(((size_t)steps + 1) * sizeof *owner);
  const char *problem = own && owner ? NULL : "out of memory";
  for (int k = 0; !problem && k < steps; k++) own[k] = INT64_MAX, owner[k] = -1;
  for (int i = 0; !problem && i < calls; i++) problem = time_plan(plan, inputs, outputs, now, own);
  for (int i = 0; !problem && i < block->count; i++) {
    int step = first_steps(plan)[i];
    if (step >= 0 && owner[step] < 0) owner[step] = i;
    first[i] = step < 0 ? -1 : owner[step];
    times[i] = 0;
  }
  /* A step without an instruction of its own belongs to the one before it. */
  for (int k = 0, at = -1; !problem && k < steps; k++) {
    if (owner[k] >= 0) at = owner[k];
    if (at >= 0) times[at] += own[k];
  }
  free(own);
  free(owner);
  return problem;
}

/* Time a tape, in nanoseconds: `times` are those of the instructions of the first block, `whole` that
 * of a call. `late` is the number of plans that calls make on the way, `held` tells the inputs that
 * are constants. A message where the tape cannot run, or NULL. */
EXPORT const char *pytensor_onnx_time_tape(const char *tape, size_t bytes, const Array *inputs,
                                           const char *held, int calls, int64_t *times,
                                           int *first, int64_t *whole, int *late) {
  Runner *runner = make_runner(&OPERATORS, tape, bytes);
  if (!runner) return "malformed tape";
  const Block *block = runner_block(runner);
  for (int i = 0; i < block->inputs; i++) {
    if (held[i]) set_constant(runner, i);
  }
  const char *problem = "out of memory";
  void **outputs = calloc((size_t)block->outputs + 1, sizeof *outputs);
  void **made = calloc((size_t)block->outputs + 1, sizeof *made);
  if (outputs && made) *whole = time_runs(runner, inputs, outputs, made, calls, &problem);
  Plan **place, *plan = problem ? NULL : take_plan(runner, inputs, &place, &problem);
  if (plan) {
    problem = time_instructions(plan, block, inputs, outputs, calls, times, first);
    *late = late_plan_count(plan);
    put_plan(place, plan);
  }
  for (int i = 0; made && i < block->outputs; i++) free(made[i]);
  free(made);
  free(outputs);
  free_runner(runner);
  return problem;
}
#endif
