/* A tape with a plan for each of the last input sizes. Calls may run at the same time. */
#ifndef RUNNER_H
#define RUNNER_H

#include "plan.h"

typedef struct Runner Runner;

/* Give the memory of a result, whose shape and type are known; an error message, or NULL. */
typedef const char *(*Allocate)(void *results, int i, const Array *result, void **data);

/* Return a runner of a tape with these operators; NULL if it is malformed, or without memory. */
Runner *make_runner(const Operators *operators, const char *tape, size_t bytes);
void free_runner(Runner *runner);
/* The inputs and outputs of the tape. */
const Block *runner_block(const Runner *runner);
/* Let several threads run long steps. The results have the same bits for any number. */
void use_threads(Runner *runner, int threads);
/* Note that an input has the same memory in every call. */
void set_constant(Runner *runner, int input);
/* Make a runner whose operands with data are constants. */
Runner *make_runner_with(const Operators *operators, const char *tape, size_t bytes,
                         const Array *operands);
/* Run the tape; an error message, or NULL. `allocate` gets `results`, and fills `outputs`. */
const char *run_tape(Runner *runner, const Array *inputs, Allocate allocate, void *results,
                     void **outputs);
/* Take a plan for inputs, or make one; NULL with a message. It goes back to its place. */
Plan *take_plan(Runner *runner, const Array *inputs, Plan ***place, const char **problem);
void put_plan(Plan **place, Plan *plan);

#endif
