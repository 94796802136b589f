/* Kernels of factorisations and solutions of linear equations, for batches of matrices. */
#include <math.h>
#include <string.h>

#include "elementwise.h"

enum { BLOCK = 32, ROWS = 4, PANEL = 4 };

/* Bits of a kernel's options: the triangle that is read, its diagonal, the rank of right-hand
 * sides. */
enum { LOWER = 1, UNIT = 2, COLUMNS = 4 };

/* Sizes of a square matrix and of its right-hand sides, which triangle is read, and what it is. */
typedef struct {
  int64_t n, columns;
  int options;
} Problem;

/* A matrix by the distances of its elements. */
typedef struct {
  const void *data;
  int64_t row, column;
} Strided;

#define JOIN(x, y) x##_##y
#define EXPANDED(x, y) JOIN(x, y)
#define NAME(x) EXPANDED(x, SUFFIX)

#define REAL double
#define LANES 4
#define SQRT sqrt
#define ABS fabs
#define LOG(x) function_of(ELEMENTWISE_Log, x)
#define FREXP frexp
#define SCALE ldexp
#define SUFFIX float64
#define TARGET
#include "linalg.inc"
#undef SUFFIX
#undef TARGET
#ifdef WIDE
#define SUFFIX float64_wide
#define TARGET WIDE
#include "linalg.inc"
#undef SUFFIX
#undef TARGET
#endif
#undef REAL
#undef LANES
#undef SQRT
#undef ABS
#undef LOG
#undef FREXP
#undef SCALE

#ifndef IS_CORE
#define REAL float
#define LANES 8
#define SQRT sqrtf
#define ABS fabsf
#define LOG(x) (float)function_of(ELEMENTWISE_Log, x)
#define FREXP frexpf
#define SCALE ldexpf
#define SUFFIX float32
#define TARGET
#include "linalg.inc"
#undef SUFFIX
#undef TARGET
#ifdef WIDE
#define SUFFIX float32_wide
#define TARGET WIDE
#include "linalg.inc"
#undef SUFFIX
#undef TARGET
#endif
#endif

typedef const char *(*Core)(const Problem *, const void *const in[2], void *const out[2], void *scratch);

static int axes_of_batch(const Array *in) { return in[0].rank - 2; }

static Problem problem_of(const Kernel *kernel, const Array *in) {
  Problem problem = {in[0].shape[in[0].rank - 1], 0, kernel->options};
  if (kernel->inputs == 2) problem.columns = kernel->options & COLUMNS ? in[1].shape[in[1].rank - 1] : 1;
  return problem;
}

static const char *check(const Kernel *kernel, const Array *in) {
  int axes = axes_of_batch(in);
  if (no_matrix(in)) return no_matrix(in);
  if (in[0].shape[axes] != in[0].shape[axes + 1]) return "the matrix is not square";
  if (kernel->inputs == 1) return NULL;
  if (in[1].rank != axes + (kernel->options & COLUMNS ? 2 : 1)) return "ranks differ";
  for (int axis = 0; axis <= axes; axis++) {
    if (in[1].shape[axis] != in[0].shape[axis]) return "sizes of the operands differ";
  }
  if (kernel->options & COLUMNS && no_matrix(&in[1])) return no_matrix(&in[1]);
  return NULL;
}

/* Scratch memory for a matrix beside its right-hand sides, or beside an identity matrix, and for
 * the pivots. */
static size_t bytes_of_scratch(const Kernel *kernel, const Array *in) {
  Problem problem = problem_of(kernel, in);
  size_t width = (size_t)(problem.n + (problem.columns ? problem.columns : problem.n));
  return (size_t)problem.n * (width * bytes_of_element(in[0].dtype) + sizeof(int32_t));
}

/* The result has the shape of the last operand. */
static const char *infer_like_last(const Kernel *kernel, const Array *in, Array *out,
                                   size_t *scratch) {
  const char *message = check(kernel, in);
  if (message) return message;
  *scratch = bytes_of_scratch(kernel, in);
  out[0] = in[kernel->inputs - 1];
  return NULL;
}

/* Each result is a number. */
static const char *infer_numbers(const Kernel *kernel, const Array *in, Array *out,
                                 size_t *scratch) {
  const char *message = check(kernel, in);
  if (message) return message;
  *scratch = bytes_of_scratch(kernel, in);
  for (int i = 0; i < kernel->outputs; i++) {
    out[i] = in[0];
    out[i].rank -= 2;
  }
  return NULL;
}

/* The results are a matrix and a vector of int32. */
static const char *infer_factors(const Kernel *kernel, const Array *in, Array *out,
                                 size_t *scratch) {
  const char *message = infer_like_last(kernel, in, out, scratch);
  if (message) return message;
  out[1] = in[0];
  out[1].rank -= 1;
  out[1].dtype = INT32;
  return NULL;
}

static int64_t bytes_of_one(const Array *array, int64_t count) {
  return array->size / count * (int64_t)bytes_of_element(array->dtype);
}

static const char *run_batch(const Kernel *kernel, const Array *in, Array *out, void *scratch) {
  int64_t count = 1;
  for (int axis = 0; axis < axes_of_batch(in); axis++) count *= in[0].shape[axis];
  Problem problem = problem_of(kernel, in);
  Core core = (Core)function_for(kernel, in[0].dtype);
  for (int64_t i = 0; i < count; i++) {
    const void *from[2] = {NULL};
    void *to[2] = {NULL};
    for (int k = 0; k < kernel->inputs; k++) {
      from[k] = (const char *)in[k].data + i * bytes_of_one(&in[k], count);
    }
    for (int k = 0; k < kernel->outputs; k++) {
      to[k] = (char *)out[k].data + i * bytes_of_one(&out[k], count);
    }
    const char *message = core(&problem, from, to, scratch);
    if (message) return message;
  }
  return NULL;
}

#define CORE(name) WITH_WIDE(core_##name)
#define KERNEL(text, operands, results, bits, inferred, core) \
  {text, operands, results, bits, BATCHED | SIZED, 0, inferred, run_batch, CORE(core)}

const Kernel LINALG_KERNELS[] = {
    KERNEL("Cholesky", 1, 1, 0, infer_like_last, cholesky),
    KERNEL("Cholesky_lower", 1, 1, LOWER, infer_like_last, cholesky),
    KERNEL("SolveTriangular_b_ndim_1", 2, 1, 0, infer_like_last, triangular),
    KERNEL("SolveTriangular_b_ndim_2", 2, 1, COLUMNS, infer_like_last, triangular),
    KERNEL("SolveTriangular_lower_b_ndim_1", 2, 1, LOWER, infer_like_last, triangular),
    KERNEL("SolveTriangular_lower_b_ndim_2", 2, 1, LOWER | COLUMNS, infer_like_last, triangular),
    KERNEL("SolveTriangular_unit_diagonal_b_ndim_1", 2, 1, UNIT, infer_like_last, triangular),
    KERNEL("SolveTriangular_unit_diagonal_b_ndim_2", 2, 1, UNIT | COLUMNS, infer_like_last,
           triangular),
    KERNEL("SolveTriangular_lower_unit_diagonal_b_ndim_1", 2, 1, LOWER | UNIT, infer_like_last,
           triangular),
    KERNEL("SolveTriangular_lower_unit_diagonal_b_ndim_2", 2, 1, LOWER | UNIT | COLUMNS,
           infer_like_last, triangular),
    KERNEL("CholeskySolve_b_ndim_1", 2, 1, 0, infer_like_last, by_factor),
    KERNEL("CholeskySolve_b_ndim_2", 2, 1, COLUMNS, infer_like_last, by_factor),
    KERNEL("CholeskySolve_lower_b_ndim_1", 2, 1, LOWER, infer_like_last, by_factor),
    KERNEL("CholeskySolve_lower_b_ndim_2", 2, 1, LOWER | COLUMNS, infer_like_last, by_factor),
    KERNEL("Solve_assume_a_gen_b_ndim_1", 2, 1, 0, infer_like_last, general),
    KERNEL("Solve_assume_a_gen_b_ndim_2", 2, 1, COLUMNS, infer_like_last, general),
    KERNEL("Solve_assume_a_pos_b_ndim_1", 2, 1, 0, infer_like_last, positive),
    KERNEL("Solve_assume_a_pos_b_ndim_2", 2, 1, COLUMNS, infer_like_last, positive),
    KERNEL("Solve_assume_a_pos_lower_b_ndim_1", 2, 1, LOWER, infer_like_last, positive),
    KERNEL("Solve_assume_a_pos_lower_b_ndim_2", 2, 1, LOWER | COLUMNS, infer_like_last, positive),
    KERNEL("Solve_assume_a_sym_b_ndim_1", 2, 1, 0, infer_like_last, symmetric),
    KERNEL("Solve_assume_a_sym_b_ndim_2", 2, 1, COLUMNS, infer_like_last, symmetric),
    KERNEL("Solve_assume_a_sym_lower_b_ndim_1", 2, 1, LOWER, infer_like_last, symmetric),
    KERNEL("Solve_assume_a_sym_lower_b_ndim_2", 2, 1, LOWER | COLUMNS, infer_like_last, symmetric),
    KERNEL("MatrixInverse", 1, 1, 0, infer_like_last, inverse),
    KERNEL("Det", 1, 1, 0, infer_numbers, determinant),
    KERNEL("SLogDet", 1, 2, 0, infer_numbers, logarithm),
    {"LUFactor", 1, 2, 0, BATCHED, INT32, infer_factors, run_batch, CORE(lu)},
    {NULL},
};
