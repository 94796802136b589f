/* The operators of a tape, by name, with their planners. */
#include "operators.h"

#include "elementwise.h"
#include "planners.h"
#include "runtime_api.h"

#ifdef __wasm__
#define JOINS(member)
#else
#define JOINS(member) , &member
#endif

#define UNARY(name) {#name, ELEMENTWISE, 0, NULL, "T>T"},
#define BINARY(name) {#name, ELEMENTWISE, 0, NULL, "TT>T"},
static const Operator ALL[] = {
    UNARY_OPERATORS(UNARY) BINARY_OPERATORS(BINARY)
    {"Where", ELEMENTWISE, 0, NULL, "BTT>T"},
    {"Identity", VIEW, 0, plan_identity, "T>T"},
    {"Shape", VIEW, 2, plan_shape, "*>I"},
    {"Size", VIEW, 0, plan_size, "*>I"},
    {"Reshape", VIEW, 1, plan_reshape, "Ti>T"},
    {"Squeeze", VIEW, 0, plan_squeeze, "T?i>T"},
    {"Unsqueeze", VIEW, 0, plan_unsqueeze, "Ti>T"},
    {"Flatten", VIEW, 1, plan_flatten, "T>T"},
    {"Expand", STEPS, 0, plan_expand, "Ti>T"},
    {"Transpose", STEPS, 0, plan_transpose, "T>T"},
    {"Slice", STEPS, 0, plan_slice, "Tii?ii>T"},
    {"Bounds", STEPS, 0, plan_bounds, "III>II"},
    {"Window", STEPS, 1, plan_window, "TIi>T"},
    {"Concat", STEPS, 1, plan_concat, "T+>T"},
    {"Split", STEPS, 1, plan_split, "T?i>T+"},
    {"ConstantOfShape", STEPS, 0, plan_constant_of_shape, "iT>T"},
    {"Range", STEPS, 0, plan_range, "III>I"},
    {"Pad", STEPS, 1, plan_pad, "TiT?i>T"},
    {"Trilu", STEPS, 1, plan_trilu, "T?i>T"},
    {"Tile", STEPS, 0, plan_tile, "Ti>T"},
    {"Gather", STEPS, 1, plan_gather, "Ti>T" JOINS(TAKES)},
    {"GatherElements", STEPS, 1, plan_gather_elements, "Ti>T"},
    {"GatherND", STEPS, 1, plan_gather_nd, "Ti>T"},
    {"ScatterElements", STEPS, 2, plan_scatter_elements, "TiT>T"},
    {"ScatterND", STEPS, 1, plan_scatter_nd, "TiT>T"},
    {"ReduceSum", STEPS, 2, plan_reduce_sum, "F?i>F" JOINS(SUMS)},
    {"ReduceMean", STEPS, 2, plan_reduce_mean, "F?i>F"},
    {"ReduceMax", STEPS, 2, plan_reduce_max, "T?i>T"},
    {"ReduceMin", STEPS, 2, plan_reduce_min, "T?i>T"},
    {"ReduceProd", STEPS, 2, plan_reduce_prod, "F?i>F"},
    {"ReduceSumSquare", STEPS, 2, plan_reduce_sum_square, "F?i>F" JOINS(SUMS_OF_SQUARES)},
    {"ReduceL1", STEPS, 2, plan_reduce_l1, "F?i>F"},
    {"ReduceL2", STEPS, 2, plan_reduce_l2, "F?i>F"},
    {"ReduceLogSum", STEPS, 2, plan_reduce_log_sum, "F?i>F"},
    {"ArgMax", STEPS, 3, plan_arg_max, "T>I"},
    {"ArgMin", STEPS, 3, plan_arg_min, "T>I"},
    {"CumSum", STEPS, 2, plan_cum_sum, "Ti>T"},
    {"TopK", STEPS, 2, plan_top_k, "Ti>TI"},
    {"Softmax", STEPS, 1, plan_softmax, "F>F"},
    {"LogSoftmax", STEPS, 1, plan_log_softmax, "F>F"},
    {"MatMul", STEPS, 0, plan_mat_mul, "TT>T"},
    {"Gemm", STEPS, 4, plan_gemm, "FF?F>F"},
    {"Function", STEPS, 1, plan_function, "*+>*+"},
    {"If", IF, 2, plan_if, "B?*+>*+"},
    {"Scan", SCAN, 3, plan_scan, "*+>*+"},
    {"Loop", LOOP, 2, plan_loop, "?IB*+>*+"},
};

#define TYPED(name, dtype) [ELEMENTWISE_##name] = dtype,
static const char RESULTS[ELEMENTWISE_COUNT] = {
    TYPED(CastToFloat64, FLOAT64) TYPED(CastToFloat32, FLOAT32) TYPED(CastToInt64, INT64)
    TYPED(CastToInt32, INT32) TYPED(CastToUint8, UINT8) TYPED(CastToUint32, UINT32)
    TYPED(CastToUint64, UINT64) TYPED(CastToBool, BOOL) TYPED(IsNaN, BOOL) TYPED(IsInf, BOOL)
    TYPED(IsPositiveInf, BOOL) TYPED(IsNegativeInf, BOOL) TYPED(Less, BOOL) TYPED(LessOrEqual, BOOL)
    TYPED(Greater, BOOL) TYPED(GreaterOrEqual, BOOL) TYPED(Equal, BOOL)
};

const Operators OPERATORS = {ALL, sizeof ALL / sizeof *ALL, RESULTS, plan_late};

static const int DTYPES[] = {FLOAT64, FLOAT32, INT64, INT32, UINT64, UINT32, UINT8, BOOL, 0};

/* Name of an operator, NULL at the end. */
EXPORT const char *pytensor_onnx_operator(int i) {
  return i >= 0 && i < OPERATORS.count ? ALL[i].name : NULL;
}

/* Let plans and calls from now on use the vectors that all processors have, or wide ones again. */
EXPORT void pytensor_onnx_use_narrow_vectors(int wanted) {
#ifdef WIDE
  has_narrow_vectors = wanted;
#else
  (void)wanted;
#endif
}

/* Whether an operator has a kernel for an element type. */
EXPORT int pytensor_onnx_covers(int op, int dtype) {
  if (op < 0 || op >= OPERATORS.count) return 0;
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
  int64_t op = instruction->op - ALL;
  if (op < ELEMENTWISE_COUNT) return IS_RARE_ELEMENTWISE[op];
  return instruction->op->plan == plan_function && calls_rare_kernel(instruction);
}

/* Whether the core of WebAssembly runs a tape. */
EXPORT int pytensor_onnx_core_runs(const char *bytes, size_t size) {
  Tape *tape = read_tape(&OPERATORS, bytes, size);
  int runs = tape != NULL;
  for (int i = 0; runs && i < tape->blocks; i++) {
    const Block *block = &tape->block[i];
    for (int k = 0; runs && k < block->count; k++) runs = !is_rare(&block->instructions[k]);
  }
  free_tape(tape);
  return runs;
}
#endif
