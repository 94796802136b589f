/* The operators of a tape, by name. */
#include "elementwise.h"
#include "planners.h"
#include "runtime_api.h"

#define UNARY(name) {#name, ELEMENTWISE, NULL, "T>T", 0},
#define BINARY(name) {#name, ELEMENTWISE, NULL, "TT>T", 0},
const Operator OPERATORS[] = {
    UNARY_OPERATORS(UNARY) BINARY_OPERATORS(BINARY)
    {"Where", ELEMENTWISE, NULL, "BTT>T", 0},
    {"Identity", VIEW, plan_identity, "T>T", 0},
    {"Shape", VIEW, plan_shape, "*>I", 2},
    {"Size", VIEW, plan_size, "*>I", 0},
    {"Reshape", VIEW, plan_reshape, "Ti>T", 1},
    {"Squeeze", VIEW, plan_squeeze, "T?i>T", 0},
    {"Unsqueeze", VIEW, plan_unsqueeze, "Ti>T", 0},
    {"Flatten", VIEW, plan_flatten, "T>T", 1},
    {"Expand", STEPS, plan_expand, "Ti>T", 0},
    {"Transpose", STEPS, plan_transpose, "T>T", 0},
    {"Slice", STEPS, plan_slice, "Tii?ii>T", 0},
    {"Bounds", STEPS, plan_bounds, "III>II", 0},
    {"Window", STEPS, plan_window, "TIi>T", 1},
    {"Concat", STEPS, plan_concat, "T+>T", 1},
    {"Split", STEPS, plan_split, "T?i>T+", 1},
    {"ConstantOfShape", STEPS, plan_constant_of_shape, "iT>T", 0},
    {"Range", STEPS, plan_range, "III>I", 0},
    {"Pad", STEPS, plan_pad, "TiT?i>T", 1},
    {"Trilu", STEPS, plan_trilu, "T?i>T", 1},
    {"Tile", STEPS, plan_tile, "Ti>T", 0},
    {"Gather", STEPS, plan_gather, "Ti>T", 1},
    {"GatherElements", STEPS, plan_gather_elements, "Ti>T", 1},
    {"GatherND", STEPS, plan_gather_nd, "Ti>T", 1},
    {"ScatterElements", STEPS, plan_scatter_elements, "TiT>T", 2},
    {"ScatterND", STEPS, plan_scatter_nd, "TiT>T", 1},
    {"ReduceSum", STEPS, plan_reduce_sum, "F?i>F", 2},
    {"ReduceMean", STEPS, plan_reduce_mean, "F?i>F", 2},
    {"ReduceMax", STEPS, plan_reduce_max, "T?i>T", 2},
    {"ReduceMin", STEPS, plan_reduce_min, "T?i>T", 2},
    {"ReduceProd", STEPS, plan_reduce_prod, "F?i>F", 2},
    {"ReduceSumSquare", STEPS, plan_reduce_sum_square, "F?i>F", 2},
    {"ReduceL1", STEPS, plan_reduce_l1, "F?i>F", 2},
    {"ReduceL2", STEPS, plan_reduce_l2, "F?i>F", 2},
    {"ReduceLogSum", STEPS, plan_reduce_log_sum, "F?i>F", 2},
    {"ArgMax", STEPS, plan_arg_max, "T>I", 3},
    {"ArgMin", STEPS, plan_arg_min, "T>I", 3},
    {"CumSum", STEPS, plan_cum_sum, "Ti>T", 2},
    {"TopK", STEPS, plan_top_k, "Ti>TI", 2},
    {"Softmax", STEPS, plan_softmax, "F>F", 1},
    {"LogSoftmax", STEPS, plan_log_softmax, "F>F", 1},
    {"MatMul", STEPS, plan_mat_mul, "TT>T", 0},
    {"Gemm", STEPS, plan_gemm, "FF?F>F", 4},
    {"Function", STEPS, plan_function, "*+>*+", 1},
    {"If", CONTROL, plan_if, "B?*+>*+", 2},
    {"Scan", CONTROL, plan_scan, "*+>*+", 3},
    {"Loop", CONTROL, plan_loop, "?IB*+>*+", 2},
};
const int OPERATOR_COUNT = sizeof OPERATORS / sizeof *OPERATORS;

#define TYPED(name, dtype) [ELEMENTWISE_##name] = dtype,
static const char RESULTS[ELEMENTWISE_COUNT] = {
    TYPED(CastToFloat64, FLOAT64) TYPED(CastToFloat32, FLOAT32) TYPED(CastToInt64, INT64)
    TYPED(CastToInt32, INT32) TYPED(CastToUint8, UINT8) TYPED(CastToUint32, UINT32)
    TYPED(CastToUint64, UINT64) TYPED(CastToBool, BOOL) TYPED(IsNaN, BOOL) TYPED(IsInf, BOOL)
    TYPED(IsPositiveInf, BOOL) TYPED(IsNegativeInf, BOOL) TYPED(Less, BOOL) TYPED(LessOrEqual, BOOL)
    TYPED(Greater, BOOL) TYPED(GreaterOrEqual, BOOL) TYPED(Equal, BOOL)
};

int result_dtype(const Operator *op) {
  return op->kind == ELEMENTWISE ? RESULTS[op - OPERATORS] : 0;
}

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
