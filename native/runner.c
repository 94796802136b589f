/* Run a tape by plans that are kept, at once or part by part. */
#include "runner.h"

#include <stdlib.h>

#include "planning.h"
#include "threads.h"

enum { MOST_PLANS = 8, LARGE_PLAN = 1 << 25 };

/* A call takes a plan out of its place and puts it back, so two calls never share one. The first
 * place is the only one of plans that take much memory. */
struct Runner {
  Tape *tape;
  char *bases; /* what plans rely on beside the sizes of an input */
  Plan *plans[MOST_PLANS];
  unsigned next; /* the place whose plan a new one replaces */
};

Runner *make_runner(const Operators *operators, const char *tape, size_t bytes) {
  Runner *runner = calloc(1, sizeof *runner);
  if (!runner) return NULL;
  runner->tape = read_tape(operators, tape, bytes);
  if (runner->tape) runner->bases = calloc((size_t)runner_block(runner)->inputs + 1, 1);
  if (!runner->bases) return free_runner(runner), NULL;
  for (int i = 0; i < runner->tape->givens; i++) runner->bases[runner->tape->given[i]] = SAME_ELEMENTS;
  return runner;
}

void free_runner(Runner *runner) {
  if (!runner) return;
  for (int i = 0; i < MOST_PLANS; i++) free_plan(runner->plans[i]);
  free_tape(runner->tape);
  free(runner->bases);
  free(runner);
}

const Block *runner_block(const Runner *runner) { return &runner->tape->block[0]; }

void use_threads(Runner *runner, int threads) {
  runner->tape->threads = threads < MOST_THREADS ? threads : MOST_THREADS;
}

void set_constant(Runner *runner, int input) { runner->bases[input] = SAME_MEMORY; }

Runner *make_runner_with(const Operators *operators, const char *tape, size_t bytes,
                         const Array *operands) {
  Runner *runner = make_runner(operators, tape, bytes);
  for (int i = 0; runner && i < runner_block(runner)->inputs; i++) {
    if (operands[i].data) set_constant(runner, i);
  }
  return runner;
}

static Plan *take(Plan **place) { return __atomic_exchange_n(place, NULL, __ATOMIC_ACQ_REL); }

void put_plan(Plan **place, Plan *plan) {
  free_plan(__atomic_exchange_n(place, plan, __ATOMIC_ACQ_REL));
}

/* Take a plan for inputs out of its place, or make one for the place that is next. */
Plan *take_plan(Runner *runner, const Array *inputs, Plan ***place, const char **problem) {
  for (int i = 0; i < MOST_PLANS; i++) {
    *place = &runner->plans[i];
    Plan *plan = take(*place);
    if (!plan) continue;
    if (plan_fits(plan, inputs)) return plan;
    put_plan(*place, plan);
  }
  const Tape *tape = runner->tape;
  Plan *made = make_plan(tape, &tape->block[0], inputs, runner->bases, NULL, problem);
  if (made && plan_bytes(made) > LARGE_PLAN) {
    *place = &runner->plans[0];
  } else {
    unsigned next = __atomic_fetch_add(&runner->next, 1, __ATOMIC_RELAXED);
    *place = &runner->plans[1 + next % (MOST_PLANS - 1)];
  }
  return made;
}

const char *run_tape(Runner *runner, const Array *inputs, Allocate allocate, void *results,
                     void **outputs) {
  Plan **place = NULL;
  const char *problem;
  Plan *plan = take_plan(runner, inputs, &place, &problem);
  if (!plan) return problem;
  problem = NULL;
  for (int i = 0; !problem && i < runner_block(runner)->outputs; i++) {
    problem = allocate(results, i, plan_output(plan, i), &outputs[i]);
  }
  if (!problem) problem = run_plan(plan, inputs, outputs);
  put_plan(place, plan);
  return problem;
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
