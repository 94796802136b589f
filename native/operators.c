/* The operators of a tape, by name. */
#include "elementwise.h"
#include "planners.h"
#include "runtime_api.h"

#define NAMED(name) {#name, ELEMENTWISE, NULL},
const Operator OPERATORS[] = {
    ELEMENTWISE_OPERATORS(NAMED)
    {"Identity", VIEW, plan_identity},
    {"Shape", VIEW, plan_shape},
    {"Size", VIEW, plan_size},
    {"Reshape", VIEW, plan_reshape},
    {"Squeeze", VIEW, plan_squeeze},
    {"Unsqueeze", VIEW, plan_unsqueeze},
    {"Flatten", VIEW, plan_flatten},
    {"Expand", STEPS, plan_expand},
    {"Transpose", STEPS, plan_transpose},
    {"Slice", STEPS, plan_slice},
    {"Bounds", STEPS, plan_bounds},
    {"Window", STEPS, plan_window},
    {"Concat", STEPS, plan_concat},
    {"Split", STEPS, plan_split},
    {"ConstantOfShape", STEPS, plan_constant_of_shape},
    {"Range", STEPS, plan_range},
    {"Pad", STEPS, plan_pad},
    {"Trilu", STEPS, plan_trilu},
    {"Tile", STEPS, plan_tile},
    {"Gather", STEPS, plan_gather},
    {"GatherElements", STEPS, plan_gather_elements},
    {"GatherND", STEPS, plan_gather_nd},
    {"ScatterElements", STEPS, plan_scatter_elements},
    {"ScatterND", STEPS, plan_scatter_nd},
    {"ReduceSum", STEPS, plan_reduce_sum},
    {"ReduceMean", STEPS, plan_reduce_mean},
    {"ReduceMax", STEPS, plan_reduce_max},
    {"ReduceMin", STEPS, plan_reduce_min},
    {"ReduceProd", STEPS, plan_reduce_prod},
    {"ReduceSumSquare", STEPS, plan_reduce_sum_square},
    {"ReduceL1", STEPS, plan_reduce_l1},
    {"ReduceL2", STEPS, plan_reduce_l2},
    {"ReduceLogSum", STEPS, plan_reduce_log_sum},
    {"ArgMax", STEPS, plan_arg_max},
    {"ArgMin", STEPS, plan_arg_min},
    {"CumSum", STEPS, plan_cum_sum},
    {"TopK", STEPS, plan_top_k},
    {"Softmax", STEPS, plan_softmax},
    {"LogSoftmax", STEPS, plan_log_softmax},
    {"MatMul", STEPS, plan_mat_mul},
    {"Gemm", STEPS, plan_gemm},
    {"Function", STEPS, plan_function},
    {"If", CONTROL, plan_if},
    {"Scan", CONTROL, plan_scan},
    {"Loop", CONTROL, plan_loop},
};
const int OPERATOR_COUNT = sizeof OPERATORS / sizeof *OPERATORS;

static const int DTYPES[] = {FLOAT64, FLOAT32, INT64, INT32, UINT64, UINT32, UINT8, BOOL, 0};

/* Name of an operator, NULL at the end. */
EXPORT const char *pytensor_onnx_operator(int i) {
  return i >= 0 && i < OPERATOR_COUNT ? OPERATORS[i].name : NULL;
}

/* Whether an operator has a kernel for an element type. */
EXPORT int pytensor_onnx_covers(int op, int dtype) {
  if (op < 0 || op >= OPERATOR_COUNT) return 0;
  if (op < ELEMENTWISE_COUNT) {
    const ElementKernel *kernel = element_kernel(op, dtype);
    return kernel && kernel->vectors;
  }
  for (const int *known = DTYPES; *known; known++) {
    if (*known == dtype) return 1;
  }
  return 0;
}

#ifndef __wasm__
#define IS_RARE(name) [ELEMENTWISE_##name] = 1,
static const char IS_RARE_ELEMENTWISE[ELEMENTWISE_COUNT] = {RARE_OPERATORS(IS_RARE)};

static int is_rare(const Instruction *instruction) {
  int64_t op = instruction->op - OPERATORS;
  if (op < ELEMENTWISE_COUNT) return IS_RARE_ELEMENTWISE[op];
  if (instruction->op->plan != plan_function) return 0;
  const char *name = name_of_function(instruction);
  return !name || is_rare_kernel(name);
}

/* Whether the core of WebAssembly runs a tape. */
EXPORT int pytensor_onnx_core_runs(const char *bytes, size_t size) {
  Tape *tape = read_tape(bytes, size);
  int runs = tape != NULL;
  for (int i = 0; runs && i < tape->blocks; i++) {
    const Block *block = &tape->block[i];
    for (int k = 0; runs && k < block->count; k++) runs = !is_rare(&block->instructions[k]);
  }
  free_tape(tape);
  return runs;
}
#endif
