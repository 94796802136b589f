/* For planners of operators: the steps and values of a plan, what may be done with them, and the
 * planners themselves. */
#ifndef PLANNERS_H
#define PLANNERS_H

#include "plan.h"
#ifdef __wasm__
#include "stop.h"
#endif

typedef struct Step Step;

/* Run a step; an error message, or NULL. */
typedef const char *(*Run)(Step *step);

struct Step {
  Run run;
  Step *next;
  char *out;
  const char *in[4];
  int64_t n[8]; /* sizes and settings */
  void *extra;
};

/* Return the number of threads that may run a step at once. */
int threads_of(const Plan *plan);

typedef struct {
  Step *first, **end;
} Steps;

typedef enum { NOWHERE, INPUT, OUTPUT, FIXED, WORK } Place;

/* A value of the tape in a plan. */
typedef struct {
  Array array;
  Place place; /* of a root */
  int known; /* whether the data is known when the plan is made */
  int index; /* of an input or output */
  int root;  /* the value in whose memory this one lies, from an offset on */
  int is_local; /* whether one block of it is kept at a time */
  int output;   /* index of the output of the region, -1 for others */
  int length;   /* the value that counts the rows that a run has written, -1 where all are */
  int expected; /* a value that has the same sizes, where they are known before its instruction is
                   planned; -1 for others */
  int uses, group_uses;
  int waiting, maker; /* while chains are made: uses to come, and the number of the element */
  int64_t offset;      /* in the root */
  int64_t first, last; /* time of the first and the last use of the memory */
  int64_t bytes, position; /* in the workspace */
} Slot;


/* What a plan frees with itself. */
typedef struct Owned Owned;
struct Owned {
  Owned *next;
  void (*release)(Owned *owned);
};

/* How an operator that is not elementwise runs in a group. */
typedef struct Member {
  int op; /* of the group's element: TAKEN from a vector, a SUM of all, or a SUM_OF_SQUARES */
  /* Whether an instruction can; sets the shape of a sum. */
  int (*fits)(Plan *plan, const Instruction *instruction);
  /* Return the offsets of elements that are taken, and set the shape of the result; NULL for sums. */
  const int64_t *(*offsets)(Plan *plan, const Instruction *instruction);
  /* Emit the step that adds the parts of a sum; NULL for others. */
  void (*add_parts)(Plan *plan, int64_t out, int64_t parts);
} Member;
extern const Member TAKES, SUMS, SUMS_OF_SQUARES;

/* Values. */
#ifdef __wasm__
static inline _Noreturn void refuse(Plan *plan, const char *problem) { (void)plan, stop(problem); }
#else
_Noreturn void refuse(Plan *plan, const char *problem);
#endif
Slot *slot(Plan *plan, int64_t value);
int has_operand(const Instruction *instruction, int i);
Array *operand(Plan *plan, const Instruction *instruction, int i);
int64_t bytes_of_one(Plan *plan, int64_t value); /* element */
/* Refuse a value whose number of rows depends on values. */
void require_all_rows(Plan *plan, int64_t value);
/* Refuse an operand that is no single element. */
void require_one(Plan *plan, int64_t value);
void *memory(Plan *plan, size_t bytes);
void *scratch(Plan *plan, size_t bytes); /* memory until the plan is made */
void own(Plan *plan, Owned *owned);
const Owned *owned_by(const Plan *plan);
int64_t new_value(Plan *plan, int dtype, int rank, const int64_t *shape);
void set_shape(Plan *plan, int64_t value, int rank, const int64_t *shape);
/* Make a value known, and return its data to be set. */
void *fix(Plan *plan, int64_t value);
/* Return the number of integers of a value that must be known. */
int known_integers(Plan *plan, int64_t value, int64_t *integers, int most);
/* Return the one integer of a value that must be known. */
int64_t known_integer(Plan *plan, int64_t value);
void touch(Plan *plan, int64_t value, int64_t time);
void reads(Plan *plan, const char **where, int64_t value, int64_t offset);
void writes(Plan *plan, char **where, int64_t value, int64_t offset);
void shares(Plan *plan, int64_t value, int64_t other, int64_t offset);

/* Steps. */
Step *emit(Plan *plan, Run run);
void copies(Plan *plan, int64_t out, int64_t in);
void copies_layout(Plan *plan, int64_t out, int64_t out_offset, int64_t in, int64_t in_offset,
                   const Layout *layout, int64_t count);
const char *run_steps(Step *step);

/* Blocks. */
const Tape *tape_of(const Plan *plan);
/* Emit the steps that follow into other steps; returns those until then. */
Steps *into(Plan *plan, Steps *steps);
/* Plan a block into steps of its own, or into the present ones without. */
void plan_block(Plan *plan, const Block *block, Steps *steps);
/* Run a step, or an iteration of a loop. */
const char *run_part(Step *step, Progress *progress);
int64_t begin_loop(Plan *plan);
void end_loop(Plan *plan, int64_t begin);

/* Axes. */
/* Return the index of an axis, which may be negative; refuse others. */
int64_t axis_of(Plan *plan, int64_t axis, int rank);
/* Mark an axis that may be listed once only. */
int64_t new_axis(Plan *plan, int64_t axis, int rank, char *is_listed);
/* Mark the axes that an operand lists. */
int read_axes(Plan *plan, const Instruction *instruction, int i, int rank, char *is_listed);
/* Return the product of two sizes that an operand gives. */
int64_t times(Plan *plan, int64_t a, int64_t b);

/* The planners of operators that are not elementwise. */
Planner plan_identity, plan_shape, plan_size, plan_reshape, plan_squeeze, plan_unsqueeze,
    plan_flatten, plan_expand, plan_transpose, plan_slice, plan_bounds, plan_window, plan_concat, plan_split,
    plan_constant_of_shape, plan_range, plan_pad, plan_trilu, plan_tile;
Planner plan_gather, plan_gather_elements, plan_gather_nd, plan_scatter_elements, plan_scatter_nd;
Planner plan_reduce_sum, plan_reduce_mean, plan_reduce_max, plan_reduce_min, plan_reduce_prod,
    plan_reduce_sum_square, plan_reduce_l1, plan_reduce_l2, plan_reduce_log_sum, plan_arg_max,
    plan_arg_min, plan_cum_sum;
Planner plan_top_k;
Planner plan_softmax, plan_log_softmax;
Planner plan_mat_mul, plan_gemm;
Planner plan_function;
Planner plan_if, plan_scan, plan_loop;
/* Whether the core of WebAssembly lacks the kernel of the function that an instruction calls. */
int calls_rare_kernel(const Instruction *instruction);
void plan_late(Plan *plan, const Block *block, Instruction *instructions, int count);

#endif
