/* The planners of operators that are not elementwise. */
#ifndef PLANNERS_H
#define PLANNERS_H

#include "plan.h"

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
/* Return the name of a function, which is in the attributes, with zeros after it; NULL without. */
const char *name_of_function(const Instruction *instruction);
Planner plan_if, plan_scan, plan_loop;

/* Copy elements of a number of bytes at offsets. */
void take(char *out, const char *in, const int64_t *offset, int64_t count, int64_t bytes);

/* Return the index of an axis, which may be negative; refuse others. */
int64_t axis_of(Plan *plan, int64_t axis, int rank);
/* Mark an axis that may be listed once only. */
int64_t new_axis(Plan *plan, int64_t axis, int rank, char *is_listed);
/* Mark the axes that an operand lists. */
int read_axes(Plan *plan, const Instruction *instruction, int i, int rank, char *is_listed);
/* Return the product of two sizes that an operand gives. */
int64_t times(Plan *plan, int64_t a, int64_t b);

static inline int64_t product(const int64_t *sizes, int64_t from, int64_t to) {
  int64_t result = 1;
  for (int64_t i = from; i < to; i++) result *= sizes[i];
  return result;
}

static inline int64_t bytes_of_one(Plan *plan, int64_t value) {
  return (int64_t)bytes_of_element(slot(plan, value)->array.dtype);
}

static inline int64_t between(int64_t x, int64_t least, int64_t most) {
  return x < least ? least : x > most ? most : x;
}

#endif
