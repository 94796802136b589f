/* Parts of orthogonal factorisations, in double precision. */
#ifndef FACTORS_H
#define FACTORS_H

#include <float.h>
#include <math.h>
#include <string.h>

#include "kernel.h"

enum { LARGEST_EXPONENT = 1000 };

#ifdef __wasm__
#define ONCE static __attribute__((noinline, unused)) /* the module is small before it is fast */
#else
#define ONCE static inline
#endif

static inline int is_finite(int64_t count, const double *x) {
  for (int64_t i = 0; i < count; i++) {
    if (!isfinite(x[i])) return 0;
  }
  return 1;
}

static inline double largest_of(int64_t count, const double *x) {
  double largest = 0;
  for (int64_t i = 0; i < count; i++) largest = fmax(largest, fabs(x[i]));
  return largest;
}

/* Return a power of two near the reciprocal of a magnitude, one for zero. */
static inline double scale_of(double largest) {
  if (largest == 0) return 1;
  int exponent = -ilogb(largest);
  if (exponent > LARGEST_EXPONENT) exponent = LARGEST_EXPONENT;
  return ldexp(1, exponent < -LARGEST_EXPONENT ? -LARGEST_EXPONENT : exponent);
}

/* Return the root of the sum of squares of numbers of a scale near one. */
static inline double length_of(double x, double y) {
  double sum = x * x + y * y;
  if (sum >= DBL_MIN / DBL_EPSILON) return sqrt(sum);
  double larger = fmax(fabs(x), fabs(y)), smaller = fmin(fabs(x), fabs(y));
  if (larger == 0) return 0;
  double ratio = smaller / larger;
  return larger * sqrt(1 + ratio * ratio);
}

/* Replace a vector by the reflector that maps it to a multiple of the first axis, whose first
 * element is one; return its factor, and the multiple. */
ONCE double reflector(int64_t count, double *v, double *multiple) {
  double largest = 0, sum = 0;
  for (int64_t i = 1; i < count; i++) {
    largest = fmax(largest, fabs(v[i]));
    sum += v[i] - v[i];
  }
  *multiple = v[0];
  v[0] = 1;
  if (largest == 0 && sum == 0) return 0;
  double scale = scale_of(fmax(largest, fabs(*multiple))), first = *multiple * scale;
  for (int64_t i = 1; i < count; i++) {
    v[i] *= scale;
    sum += v[i] * v[i];
  }
  double norm = -copysign(sqrt(first * first + sum), first);
  for (int64_t i = 1; i < count; i++) v[i] /= first - norm;
  *multiple = norm / scale;
  return (norm - first) / norm;
}

typedef struct {
  double cosine, sine;
} Rotation;

/* Vectors of 32 bytes at any element. */
typedef double Lanes __attribute__((vector_size(32), aligned(sizeof(double)), may_alias));
enum { LANES = 4, FEW = 8 };

static inline __attribute__((always_inline)) double dot_lanes(int64_t n, const double *x,
                                                              const double *y) {
  Lanes even = {0}, odd = {0};
  int64_t i = 0;
  for (; i + 2 * LANES <= n; i += 2 * LANES) {
    even += *(const Lanes *)(x + i) * *(const Lanes *)(y + i);
    odd += *(const Lanes *)(x + i + LANES) * *(const Lanes *)(y + i + LANES);
  }
  even += odd;
  double sum = even[0] + even[1] + even[2] + even[3];
  for (; i < n; i++) sum += x[i] * y[i];
  return sum;
}

static inline __attribute__((always_inline)) void add_lanes(int64_t n, double factor,
                                                            const double *restrict y,
                                                            double *restrict x) {
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) *(Lanes *)(x + i) += factor * *(const Lanes *)(y + i);
  for (; i < n; i++) x[i] += factor * y[i];
}

static inline __attribute__((always_inline)) void rotate_lanes(int64_t n, double *restrict x,
                                                               double *restrict y, Rotation by) {
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) {
    Lanes first = *(Lanes *)(x + i), second = *(Lanes *)(y + i);
    *(Lanes *)(x + i) = by.cosine * first + by.sine * second;
    *(Lanes *)(y + i) = by.cosine * second - by.sine * first;
  }
  for (; i < n; i++) {
    double first = x[i], second = y[i];
    x[i] = by.cosine * first + by.sine * second;
    y[i] = by.cosine * second - by.sine * first;
  }
}

#ifdef WIDE
static WIDE double dot_wide(int64_t n, const double *x, const double *y) {
  return dot_lanes(n, x, y);
}
static WIDE void add_wide(int64_t n, double factor, const double *y, double *x) {
  add_lanes(n, factor, y, x);
}
static WIDE void rotate_wide(int64_t n, double *x, double *y, Rotation by) {
  rotate_lanes(n, x, y, by);
}
static inline int is_wide(int64_t n) { return n >= FEW && has_wide_vectors(); }
#else
#define dot_wide dot_lanes
#define add_wide add_lanes
#define rotate_wide rotate_lanes
static inline int is_wide(int64_t n) { return (void)n, 0; }
#endif

ONCE double dot(int64_t n, const double *x, const double *y) {
  return is_wide(n) ? dot_wide(n, x, y) : dot_lanes(n, x, y);
}

/* x += factor y */
ONCE void add_multiple(int64_t n, double factor, const double *y, double *x) {
  if (is_wide(n)) add_wide(n, factor, y, x);
  else add_lanes(n, factor, y, x);
}

/* Rows x and y become c x + s y and c y - s x. */
ONCE void rotate_rows(int64_t n, double *x, double *y, Rotation by) {
  if (is_wide(n)) rotate_wide(n, x, y, by);
  else rotate_lanes(n, x, y, by);
}

/* Reflect rows of n elements, of these the first columns: a -= factor v (v' a). */
ONCE void reflect_rows(int64_t n, int64_t columns, int64_t count, const double *v,
                       double factor, double *a, double *sums) {
  for (int64_t j = 0; j < columns; j++) sums[j] = 0;
  for (int64_t i = 0; i < count; i++) add_multiple(columns, v[i], a + i * n, sums);
  for (int64_t i = 0; i < count; i++) add_multiple(columns, -factor * v[i], sums, a + i * n);
}

/* Reflect columns of the first rows of a matrix: a -= factor (a v) v'. */
ONCE void reflect_columns(int64_t n, int64_t rows, int64_t count, const double *v,
                          double factor, double *a) {
  for (int64_t i = 0; i < rows; i++, a += n) {
    add_multiple(count, -factor * dot(count, a, v), v, a);
  }
}

static inline void fill_nan(int64_t count, double *x) {
  for (int64_t i = 0; i < count; i++) x[i] = NAN;
}

static inline int64_t elements_of_matrix(const Array *array) {
  return array->shape[array->rank - 2] * array->shape[array->rank - 1];
}

static inline int64_t matrices_of(const Array *array) {
  int64_t count = 1;
  for (int axis = 0; axis < array->rank - 2; axis++) count *= array->shape[axis];
  return count;
}

/* Return the i-th matrix in double precision, copied to memory unless it is there already. */
static inline const double *matrix_of(const Array *array, int64_t i, double *memory) {
  int64_t count = elements_of_matrix(array);
  if (array->dtype == FLOAT64) return (const double *)array->data + i * count;
  const float *from = (const float *)array->data + i * count;
  for (int64_t k = 0; k < count; k++) memory[k] = from[k];
  return memory;
}

/* Write the numbers of the i-th matrix. */
static inline void write_numbers(Array *out, int64_t i, int64_t size, const double *from) {
  if (out->dtype == FLOAT64) {
    copy_bytes((double *)out->data + i * size, from, size * (int64_t)sizeof *from);
    return;
  }
  float *to = (float *)out->data + i * size;
  for (int64_t k = 0; k < size; k++) to[k] = (float)from[k];
}

static inline void write_matrix(Array *array, int64_t i, const double *from) {
  write_numbers(array, i, elements_of_matrix(array), from);
}

static inline void write_identity(int64_t rows, int64_t columns, double *a) {
  for (int64_t i = 0; i < rows * columns; i++) a[i] = 0;
  for (int64_t i = 0; i < rows && i < columns; i++) a[i * (columns + 1)] = 1;
}

#define FOR_ALL(core) FUNCTIONS((Function)core, (Function)core)

#endif
