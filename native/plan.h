/* A plan: the steps of a tape for one set of input sizes, with their workspace.
 *
 * One call at a time uses a plan, so steps hold the addresses that they read and write. */
#ifndef PLAN_H
#define PLAN_H

#include "tape.h"

/* What a plan relies on beside the sizes of an input: nothing, the memory, or the elements. */
enum { SIZES_ONLY, SAME_MEMORY, SAME_ELEMENTS };

/* Make a plan of a block for inputs; NULL with a message if it cannot run for them. `bases` says
 * what it relies on for each, and `results` has the sizes of the outputs where they are known. */
Plan *make_plan(const Tape *tape, const Block *block, const Array *inputs, const char *bases,
                const Array *results, const char **problem);
void free_plan(Plan *plan);
size_t plan_bytes(const Plan *plan);
int plan_fits(const Plan *plan, const Array *inputs);
const Array *plan_output(const Plan *plan, int i);
const char *run_plan(Plan *plan, const Array *inputs, void *const *outputs);

#ifndef __wasm__
typedef int64_t Clock(void); /* nanoseconds */
/* Run a plan, and lower the time of each step to that of this run. */
const char *time_plan(Plan *plan, const Array *inputs, void *const *outputs, Clock *clock,
                      int64_t *times);
int count_steps(const Plan *plan);
/* The index of the first step of each instruction, which others of one loop over elements share; -1
 * for instructions without steps. */
const int *first_steps(const Plan *plan);
/* Number of the plans that the last runs have made on the way. */
int late_plan_count(const Plan *plan);
#endif

/* Iterations of the present loop of a run in parts; no total between loops. */
typedef struct {
  int64_t done, total;
} Progress;

/* Run a plan part by part: begin it, and go on, each time by a step or by an iteration of a loop,
 * until it has no more; then end it. */
const char *begin_plan(Plan *plan, const Array *inputs, void *const *outputs);
const char *go_on(Plan *plan);
int has_more(const Plan *plan);
Progress progress_of(const Plan *plan);
/* Compute the outputs as if the present loop had ended: missing rows are NaN, or zero. Between loops
 * it does nothing. */
const char *peek(Plan *plan);
void end_plan(Plan *plan);

#endif
