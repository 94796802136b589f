/* Sums and other reductions, in an order that depends on sizes only. */
#include <math.h>

#include "chains.h"
#include "planners.h"
#include "vector_math.h"

/* A kernel reduces each of `outer` stacks of `length` rows of `inner` elements to one row. */
typedef void (*Reduce)(char *out, const char *in, int64_t outer, int64_t length, int64_t inner);

enum { SUM_BLOCK = 128 };

/* Eight parts of a sum: an array, of which compilers make vectors, or a vector. */
#ifdef __wasm__
#define PARTS(T) PARTS_##T
#define EACH_PART(part, OP, TERM, T, from) part OP TERM(*(const PARTS(T) *)(from))
typedef double PARTS(double) __attribute__((ext_vector_type(8), aligned(sizeof(double))));
typedef float PARTS(float) __attribute__((ext_vector_type(8), aligned(sizeof(float))));
#define PARTS_OF(T, part) PARTS(T) part
#else
#define PARTS_OF(T, part) T part[8]
#define EACH_PART(part, OP, TERM, T, from) \
  for (int k = 0; k < 8; k++) part[k] OP TERM((from)[k])
#endif

#define TARGET
#define T double
#define BITS int64_t
#define S(name) name##_f64
#include "sums.inc"

#define TARGET
#define T float
#define BITS int32_t
#define S(name) name##_f32
#include "sums.inc"

#ifdef WIDE
#define TARGET WIDE
#define T double
#define BITS int64_t
#define S(name) name##_f64_wide
#include "sums.inc"

#define TARGET WIDE
#define T float
#define BITS int32_t
#define S(name) name##_f32_wide
#include "sums.inc"
#endif

/* In WebAssembly one function is for both extremes. */
#ifdef __wasm__
#define IN_PARTS(T) ((T)0.5 > 0) /* the order matters for NaN only */
#define FOR_BOTH static __attribute__((noinline))
#else
#define IN_PARTS(T) 1
#define FOR_BOTH static inline __attribute__((always_inline))
#endif
#define IS_BEYOND(x, best) (is_max ? x > best : x < best)

#define T double
#define S(name) name##_f64
#define LOWEST -INFINITY
#define HIGHEST INFINITY
#include "extremes.inc"

#define T float
#define S(name) name##_f32
#define LOWEST -INFINITY
#define HIGHEST INFINITY
#include "extremes.inc"

#define T int64_t
#define S(name) name##_i64
#define LOWEST INT64_MIN
#define HIGHEST INT64_MAX
#include "extremes.inc"

#define T int32_t
#define S(name) name##_i32
#define LOWEST INT32_MIN
#define HIGHEST INT32_MAX
#include "extremes.inc"

#define T uint8_t
#define S(name) name##_u8
#define LOWEST 0
#define HIGHEST UINT8_MAX
#include "extremes.inc"

/* What follows a sum. */
enum { NOTHING, DIVISION, ROOT, LOGARITHM };

#define FINISH(T, divided, root, logarithm)                                    \
  for (int64_t i = 0; i < count; i++) {                                        \
    T x = ((T *)out)[i];                                                       \
    ((T *)out)[i] = kind == DIVISION ? divided : kind == ROOT ? root : logarithm; \
  }

#define LOG(x) function_of(ELEMENTWISE_Log, x)

static void finish(char *out, int64_t count, int64_t length, int kind, int dtype) {
  /* The runtime's mean of nothing is zero. */
  if (kind == NOTHING || (kind == DIVISION && !length)) return;
  if (dtype == FLOAT64) FINISH(double, x / (double)length, sqrt(x), LOG(x))
  else FINISH(float, x / (float)length, sqrtf(x), (float)LOG(x))
}

/* n: outer, length, inner, what follows, dtype */
static const char *run_reduction(Step *step) {
  const int64_t *n = step->n;
  (*(Reduce *)step->extra)(step->out, step->in[0], n[0], n[1], n[2]);
  finish(step->out, n[0] * n[2], n[1], (int)n[3], (int)n[4]);
  return NULL;
}

/* Return the value with reduced axes last, if they are not neighbours. */
static int64_t gathered(Plan *plan, int64_t value, const char *is_reduced, int64_t *outer,
                        int64_t *length, int64_t *inner) {
  Array given = slot(plan, value)->array;
  int64_t own[MOST_AXES], shape[MOST_AXES], strides[MOST_AXES], kept = 1;
  int runs = 0, rank = 0, was = 0;
  *outer = *length = *inner = 1;
  for (int axis = 0; axis < given.rank; axis++) {
    if (given.shape[axis] == 1) continue;
    if (is_reduced[axis]) {
      runs += !was;
      *length *= given.shape[axis];
    } else {
      kept *= given.shape[axis];
      if (runs) *inner *= given.shape[axis];
      else *outer *= given.shape[axis];
    }
    was = is_reduced[axis];
  }
  if (runs <= 1) return value;
  *outer = kept, *inner = 1;
  if (!given.size) return value;
  strides_of(&given, own);
  for (int reduced = 0; reduced < 2; reduced++) {
    for (int axis = 0; axis < given.rank; axis++) {
      if (is_reduced[axis] != reduced) continue;
      shape[rank] = given.shape[axis];
      strides[rank++] = own[axis];
    }
  }
  int64_t moved = new_value(plan, given.dtype, rank, shape);
  Layout layout = layout_of(rank, shape, strides);
  copies_layout(plan, moved, 0, value, 0, &layout, given.size);
  return moved;
}

/* Mark the axes that an instruction reduces, and set the shape of its result. */
static void mark_axes(Plan *plan, const Instruction *instruction, char *is_reduced) {
  Array given = *operand(plan, instruction, 0);
  int64_t keeps_axes = instruction->attribute[0], does_nothing = instruction->attribute[1];
  int64_t shape[MOST_AXES];
  int rank = 0, count = 0;
  memset(is_reduced, 0, MOST_AXES);
  if (has_operand(instruction, 1)) count = read_axes(plan, instruction, 1, given.rank, is_reduced);
  if (!count && !does_nothing) memset(is_reduced, 1, MOST_AXES);
  for (int axis = 0; axis < given.rank; axis++) {
    if (!is_reduced[axis] || keeps_axes) shape[rank++] = is_reduced[axis] ? 1 : given.shape[axis];
  }
  set_shape(plan, instruction->out[0], rank, shape);
}

static void reduces(Plan *plan, const Instruction *instruction, const Reduce *kernel, int kind) {
  Array given = *operand(plan, instruction, 0);
  char is_reduced[MOST_AXES];
  int64_t outer, length, inner;
  mark_axes(plan, instruction, is_reduced);
  if (!kernel) refuse(plan, "a reduction without kernel");
  int64_t from = gathered(plan, instruction->in[0], is_reduced, &outer, &length, &inner);
  if (given.dtype == BOOL && !length && outer * inner) refuse(plan, "an extreme of nothing");
  Step *step = emit(plan, run_reduction);
  reads(plan, &step->in[0], from, 0);
  writes(plan, &step->out, instruction->out[0], 0);
  step->n[0] = outer, step->n[1] = length, step->n[2] = inner, step->n[3] = kind;
  step->n[4] = given.dtype;
  step->extra = (void *)kernel;
}

#ifdef WIDE
#define FLOAT_KERNEL(name)                                                                   \
  static const Reduce *name##_for(int dtype) {                                               \
    static const Reduce f64[] = {reduce_##name##_f64, reduce_##name##_f64_wide},             \
                        f32[] = {reduce_##name##_f32, reduce_##name##_f32_wide};             \
    int is_wide = has_wide_vectors() != 0;                                                   \
    return dtype == FLOAT64 ? &f64[is_wide] : dtype == FLOAT32 ? &f32[is_wide] : NULL;       \
  }
#else
#define FLOAT_KERNEL(name)                                                    \
  static const Reduce *name##_for(int dtype) {                                \
    static const Reduce f64 = reduce_##name##_f64, f32 = reduce_##name##_f32; \
    return dtype == FLOAT64 ? &f64 : dtype == FLOAT32 ? &f32 : NULL;          \
  }
#endif
FLOAT_KERNEL(sum)
FLOAT_KERNEL(prod)
#ifndef __wasm__
FLOAT_KERNEL(square)
FLOAT_KERNEL(magnitude)
#endif

#define EXTREME_KERNEL(name)                                                             \
  static const Reduce *name##_for(int dtype) {                                           \
    static const Reduce f64 = reduce_##name##_f64, f32 = reduce_##name##_f32,            \
                        i64 = reduce_##name##_i64, i32 = reduce_##name##_i32,            \
                        u8 = reduce_##name##_u8;                                         \
    switch (dtype) {                                                                     \
      case FLOAT64: return &f64;                                                         \
      case FLOAT32: return &f32;                                                         \
      case INT64: return &i64;                                                           \
      case INT32: return &i32;                                                           \
      case UINT8: case BOOL: return &u8;                                                 \
      default: return NULL;                                                              \
    }                                                                                    \
  }
EXTREME_KERNEL(max)
EXTREME_KERNEL(min)

#define PLANNER(name, kernel, kind)                                                       \
  void plan_reduce_##name(Plan *plan, const Instruction *instruction) {                   \
    reduces(plan, instruction, kernel##_for(operand(plan, instruction, 0)->dtype), kind); \
  }
PLANNER(sum, sum, NOTHING)
PLANNER(mean, sum, DIVISION)
PLANNER(max, max, NOTHING)
PLANNER(min, min, NOTHING)
PLANNER(prod, prod, NOTHING)
PLANNER(log_sum, sum, LOGARITHM)
#ifndef __wasm__
PLANNER(sum_square, square, NOTHING)
PLANNER(l1, magnitude, NOTHING)
PLANNER(l2, square, ROOT)
#else
/* Pages load all kernels: sums of squares and magnitudes are sums of arrays. */
static const char *run_terms(Step *step) {
  const Element element = {.at = {step->out, (char *)step->in[0], (char *)step->in[0]}};
  ((ElementRun)step->extra)(&element, 0, step->n[0]);
  return NULL;
}

static void reduces_terms(Plan *plan, const Instruction *instruction, int op, int kind) {
  Array given = *operand(plan, instruction, 0);
  int64_t terms = new_value(plan, given.dtype, given.rank, given.shape);
  Step *step = emit(plan, run_terms);
  reads(plan, &step->in[0], instruction->in[0], 0);
  writes(plan, &step->out, terms, 0);
  step->n[0] = given.size;
  step->extra = (void *)element_kernel(op, given.dtype)->vectors;
  int64_t in[] = {terms, has_operand(instruction, 1) ? instruction->in[1] : -1};
  Instruction sum = *instruction;
  sum.in = in;
  reduces(plan, &sum, sum_for(given.dtype), kind);
}
void plan_reduce_sum_square(Plan *plan, const Instruction *instruction) {
  reduces_terms(plan, instruction, ELEMENTWISE_Mul, NOTHING);
}
void plan_reduce_l1(Plan *plan, const Instruction *instruction) {
  reduces_terms(plan, instruction, ELEMENTWISE_Abs, NOTHING);
}
void plan_reduce_l2(Plan *plan, const Instruction *instruction) {
  reduces_terms(plan, instruction, ELEMENTWISE_Mul, ROOT);
}
#endif

/* Find the first or the last extreme of each row; n: outer, length, inner, whether the last, whether
 * the largest. */
#define RUN_ARG(name, T)                                                                     \
  static const char *run_arg_##name(Step *step) {                                            \
    const int64_t length = step->n[1], inner = step->n[2], last = step->n[3];                \
    const int is_max = (int)step->n[4];                                                      \
    int64_t *out = (int64_t *)step->out;                                                     \
    for (int64_t row = 0; row < step->n[0] * inner; row++) {                                 \
      const T *in = (const T *)step->in[0] + row / inner * length * inner + row % inner;     \
      int64_t found = 0;                                                                     \
      for (int64_t k = 1; k < length; k++) {                                                 \
        T x = in[k * inner], best = in[found * inner];                                       \
        if (IS_BEYOND(x, best) || (last && x == best)) found = k;                            \
      }                                                                                      \
      out[row] = found;                                                                      \
    }                                                                                        \
    return NULL;                                                                             \
  }
RUN_ARG(f64, double)
RUN_ARG(f32, float)
RUN_ARG(i64, int64_t)
RUN_ARG(i32, int32_t)
RUN_ARG(u8, uint8_t)

static Run arg_kernel(int dtype) {
  switch (dtype) {
    case FLOAT64: return run_arg_f64;
    case FLOAT32: return run_arg_f32;
    case INT64: return run_arg_i64;
    case INT32: return run_arg_i32;
    case UINT8: case BOOL: return run_arg_u8;
    default: return NULL;
  }
}

/* attributes: axis, whether it stays, whether the last index counts */
static void finds_index(Plan *plan, const Instruction *instruction, int is_max) {
  Array given = *operand(plan, instruction, 0);
  int64_t axis = axis_of(plan, instruction->attribute[0], given.rank), shape[MOST_AXES];
  int rank = 0;
  for (int i = 0; i < given.rank; i++) {
    if (i != axis || instruction->attribute[1]) shape[rank++] = i == axis ? 1 : given.shape[i];
  }
  set_shape(plan, instruction->out[0], rank, shape);
  int64_t outer = product(given.shape, 0, axis), inner = product(given.shape, axis + 1, given.rank);
  if (!given.shape[axis] && outer * inner) refuse(plan, "an extreme of nothing");
  if (!arg_kernel(given.dtype)) refuse(plan, "an index without kernel");
  Step *step = emit(plan, arg_kernel(given.dtype));
  reads(plan, &step->in[0], instruction->in[0], 0);
  writes(plan, &step->out, instruction->out[0], 0);
  int64_t n[] = {outer, given.shape[axis], inner, instruction->attribute[2], is_max};
  memcpy(step->n, n, sizeof n);
}

void plan_arg_max(Plan *plan, const Instruction *instruction) { finds_index(plan, instruction, 1); }
void plan_arg_min(Plan *plan, const Instruction *instruction) { finds_index(plan, instruction, 0); }

static int sums_all(Plan *plan, const Instruction *instruction) {
  const Array *given = operand(plan, instruction, 0);
  char is_reduced[MOST_AXES];
  if (!can_chain(given->dtype, given->size)) return 0;
  mark_axes(plan, instruction, is_reduced);
  return slot(plan, instruction->out[0])->array.size == 1;
}

/* Sum the blocks of an array in pairs, as a sum of the whole array does. */
#define PAIRS(name, T)                                                                       \
  static T pairs_##name(const T *x, int64_t n) {                                             \
    return n == 1 ? *x : pairs_##name(x, n / 2) + pairs_##name(x + n / 2, n - n / 2);        \
  }                                                                                          \
  static void reduce_pairs_##name(char *out, const char *in, int64_t outer, int64_t length,  \
                                  int64_t inner) {                                           \
    (void)outer, (void)inner;                                                                \
    *(T *)out = pairs_##name((const T *)in, length);                                         \
  }
PAIRS(f64, double)
PAIRS(f32, float)

static void adds_parts(Plan *plan, int64_t out, int64_t parts) {
  static const Reduce f64 = reduce_pairs_f64, f32 = reduce_pairs_f32;
  Step *step = emit(plan, run_reduction);
  int dtype = slot(plan, parts)->array.dtype;
  reads(plan, &step->in[0], parts, 0);
  writes(plan, &step->out, out, 0);
  step->n[0] = step->n[2] = 1;
  step->n[1] = slot(plan, parts)->array.size;
  step->n[4] = dtype;
  step->extra = (void *)(dtype == FLOAT64 ? &f64 : &f32);
}

const Member SUMS = {(SUM), sums_all, NULL, adds_parts};
const Member SUMS_OF_SQUARES = {SUM_OF_SQUARES, sums_all, NULL, adds_parts};

/* n: outer, length, inner, exclusive, reverse, dtype */
#define RUN_CUM_SUM(name, T)                                                            \
  static const char *run_cum_sum_##name(Step *step) {                                   \
    const T *in = (const T *)step->in[0];                                               \
    T *out = (T *)step->out;                                                            \
    int64_t length = step->n[1], inner = step->n[2], exclusive = step->n[3];            \
    for (int64_t o = 0; o < step->n[0]; o++, in += length * inner, out += length * inner) { \
      for (int64_t i = 0; i < inner; i++) {                                             \
        T total = 0;                                                                    \
        for (int64_t k = 0; k < length; k++) {                                          \
          int64_t at = (step->n[4] ? length - 1 - k : k) * inner + i;                   \
          T before = total;                                                             \
          total = k ? total + in[at] : in[at];                                          \
          out[at] = exclusive ? before : total;                                         \
        }                                                                               \
      }                                                                                 \
    }                                                                                   \
    return NULL;                                                                        \
  }
RUN_CUM_SUM(f64, double)
RUN_CUM_SUM(f32, float)
RUN_CUM_SUM(i64, uint64_t)
RUN_CUM_SUM(i32, uint32_t)

void plan_cum_sum(Plan *plan, const Instruction *instruction) {
  Array given = *operand(plan, instruction, 0);
  int64_t axis = axis_of(plan, known_integer(plan, instruction->in[1]), given.rank);
  set_shape(plan, instruction->out[0], given.rank, given.shape);
  Run run = given.dtype == FLOAT64   ? run_cum_sum_f64
            : given.dtype == FLOAT32 ? run_cum_sum_f32
            : given.dtype == INT64   ? run_cum_sum_i64
            : given.dtype == INT32   ? run_cum_sum_i32
                                     : NULL;
  if (!run) refuse(plan, "a CumSum without kernel");
  Step *step = emit(plan, run);
  reads(plan, &step->in[0], instruction->in[0], 0);
  writes(plan, &step->out, instruction->out[0], 0);
  int64_t n[] = {product(given.shape, 0, axis), given.shape[axis],
                 product(given.shape, axis + 1, given.rank), instruction->attribute[0],
                 instruction->attribute[1]};
  memcpy(step->n, n, sizeof n);
}

#ifdef __wasm__
#define EXPONENTIALS(x, count, T)                                            \
  element_kernel(ELEMENTWISE_Exp, sizeof(T) == 8 ? FLOAT64 : FLOAT32)->vectors( \
      &(Element){.at = {(char *)(x), (char *)(x)}}, 0, count);
#define exp_of_one(x) function_of(ELEMENTWISE_Exp, x)
#define log_of_one(x) function_of(ELEMENTWISE_Log, x)
#else
#define EXPONENTIALS(x, count, T) for (int64_t i = 0; i < count; i++) (x)[i] = (T)exp_of((x)[i]);
#define exp_of_one exp_of
#define log_of_one log_of
#endif

/* Softmax of rows, pass by pass, so that the exponentials are one loop. */
#define SOFTMAX(TARGET, name, T)                                                              \
  static TARGET void soften_##name(T *restrict out, const T *in, int64_t rows, int64_t length) { \
    for (int64_t row = 0; row < rows; row++) {                                                \
      const T *x = in + row * length;                                                         \
      T most = x[0];                                                                          \
      for (int64_t k = 1; k < length; k++) most = x[k] > most ? x[k] : most;                  \
      for (int64_t k = 0; k < length; k++) out[row * length + k] = x[k] - most;               \
    }                                                                                         \
    EXPONENTIALS(out, rows * length, T)                                                       \
    for (int64_t row = 0; row < rows; row++) {                                                \
      T *y = out + row * length, total = 0;                                                   \
      for (int64_t k = 0; k < length; k++) total += y[k];                                     \
      for (int64_t k = 0; k < length; k++) y[k] /= total;                                     \
    }                                                                                         \
  }
/* Softmax along columns, a block of them at a time; with a logarithm where it is taken. */
#define COLUMNS_OF_SOFTMAX 64
#define SOFTMAX_OF_COLUMNS(TARGET, name, T)                                                   \
  static TARGET void soften_columns_##name(T *restrict out, const T *in, int64_t length,         \
                                           int64_t inner, int64_t takes_log) {                \
    T most[COLUMNS_OF_SOFTMAX], total[COLUMNS_OF_SOFTMAX], power[COLUMNS_OF_SOFTMAX];         \
    for (int64_t first = 0; first < inner; first += COLUMNS_OF_SOFTMAX) {                     \
      int64_t n = inner - first < COLUMNS_OF_SOFTMAX ? inner - first : COLUMNS_OF_SOFTMAX;    \
      for (int64_t i = 0; i < n; i++) most[i] = in[first + i], total[i] = 0;                  \
      for (int64_t k = 1; k < length; k++) {                                                  \
        const T *x = in + k * inner + first;                                                  \
        for (int64_t i = 0; i < n; i++) most[i] = x[i] > most[i] ? x[i] : most[i];            \
      }                                                                                       \
      for (int64_t k = 0; k < length; k++) {                                                  \
        const T *x = in + k * inner + first;                                                  \
        T *y = out + k * inner + first;                                                       \
        for (int64_t i = 0; i < n; i++) power[i] = x[i] - most[i];                            \
        if (takes_log) memcpy(y, power, n * sizeof(T));                                       \
        EXPONENTIALS(power, n, T)                                                             \
        if (!takes_log) memcpy(y, power, n * sizeof(T));                                      \
        for (int64_t i = 0; i < n; i++) total[i] += power[i];                                 \
      }                                                                                       \
      if (takes_log)                                                                          \
        for (int64_t i = 0; i < n; i++) total[i] = (T)log_of_one(total[i]);                   \
      for (int64_t k = 0; k < length; k++) {                                                  \
        T *y = out + k * inner + first;                                                       \
        if (takes_log)                                                                        \
          for (int64_t i = 0; i < n; i++) y[i] -= total[i];                                   \
        else                                                                                  \
          for (int64_t i = 0; i < n; i++) y[i] /= total[i];                                   \
      }                                                                                       \
    }                                                                                         \
  }
SOFTMAX(, f64, double)
SOFTMAX(, f32, float)
SOFTMAX_OF_COLUMNS(, f64, double)
SOFTMAX_OF_COLUMNS(, f32, float)
#ifdef WIDE
SOFTMAX(WIDE, f64_wide, double)
SOFTMAX(WIDE, f32_wide, float)
SOFTMAX_OF_COLUMNS(WIDE, f64_wide, double)
SOFTMAX_OF_COLUMNS(WIDE, f32_wide, float)
#define SOFTEN(name) (has_wide_vectors() ? soften_##name##_wide : soften_##name)
#define SOFTEN_COLUMNS(name) (has_wide_vectors() ? soften_columns_##name##_wide : soften_columns_##name)
#else
#define SOFTEN(name) soften_##name
#define SOFTEN_COLUMNS(name) soften_columns_##name
#endif

/* n: outer, length, inner, whether the logarithm is taken */
#define RUN_SOFTMAX(name, T)                                                            \
  static const char *run_softmax_##name(Step *step) {                                   \
    const T *in = (const T *)step->in[0];                                               \
    T *out = (T *)step->out;                                                            \
    int64_t length = step->n[1], inner = step->n[2];                                    \
    if (!length) return NULL;                                                           \
    if (inner == 1 && !step->n[3]) {                                                    \
      SOFTEN(name)(out, in, step->n[0], length);                                        \
      return NULL;                                                                      \
    }                                                                                   \
    for (int64_t i = 0; i < step->n[0] * length * inner; i += length * inner) {         \
      SOFTEN_COLUMNS(name)(out + i, in + i, length, inner, step->n[3]);                 \
    }                                                                                   \
    return NULL;                                                                        \
  }
RUN_SOFTMAX(f64, double)
RUN_SOFTMAX(f32, float)

static void plan_softmaxes(Plan *plan, const Instruction *instruction, int64_t takes_log) {
  Array given = *operand(plan, instruction, 0);
  int64_t axis = axis_of(plan, instruction->attribute[0], given.rank);
  set_shape(plan, instruction->out[0], given.rank, given.shape);
  Step *step = emit(plan, given.dtype == FLOAT64 ? run_softmax_f64 : run_softmax_f32);
  reads(plan, &step->in[0], instruction->in[0], 0);
  writes(plan, &step->out, instruction->out[0], 0);
  int64_t n[] = {given.size ? product(given.shape, 0, axis) : 0, given.shape[axis],
                 product(given.shape, axis + 1, given.rank), takes_log};
  memcpy(step->n, n, sizeof n);
}

void plan_softmax(Plan *plan, const Instruction *instruction) {
  plan_softmaxes(plan, instruction, 0);
}
void plan_log_softmax(Plan *plan, const Instruction *instruction) {
  plan_softmaxes(plan, instruction, 1);
}
