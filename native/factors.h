/* Parts of orthogonal factorisations, in double precision. */
#ifndef FACTORS_H
#define FACTORS_H

#include <float.h>
#include <math.h>
#include <string.h>

#include "kernel.h"

enum { LARGEST_EXPONENT = 1000 };

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

static inline double length_of(double x, double y) {
  double larger = fmax(fabs(x), fabs(y)), smaller = fmin(fabs(x), fabs(y));
  if (larger == 0) return 0;
  double ratio = smaller / larger;
  return larger * sqrt(1 + ratio * ratio);
}

/* Replace a vector by the reflector that maps it to a multiple of the first axis, whose first
 * element is one; return its factor, and the multiple. */
static inline double reflector(int64_t count, double *v, double *multiple) {
  double largest = 0, sum = 0;
  for (int64_t i = 1; i < count; i++) {
    largest = fmax(largest, fabs(v[i]));
    sum += v[i] - v[i];
  }
  *multiple = v[0];
  v[0] = 1;
  if (largest == 0 && sum == 0) return 0;
  double first = *multiple;
  largest = fmax(largest, fabs(first));
  for (int64_t i = 1; i < count; i++) {
    double x = v[i] / largest;
    sum += x * x;
  }
  double x = first / largest;
  double norm = -copysign(largest * sqrt(x * x + sum), first);
  for (int64_t i = 1; i < count; i++) v[i] /= first - norm;
  *multiple = norm;
  return (norm - first) / norm;
}

/* Reflect rows of n elements, of these the first columns: a -= factor v (v' a). */
static inline void reflect_rows(int64_t n, int64_t columns, int64_t count, const double *v,
                                double factor, double *a, double *sums) {
  for (int64_t j = 0; j < columns; j++) sums[j] = 0;
  for (int64_t i = 0; i < count; i++) {
    for (int64_t j = 0; j < columns; j++) sums[j] += v[i] * a[i * n + j];
  }
  for (int64_t i = 0; i < count; i++) {
    double scaled = factor * v[i];
    for (int64_t j = 0; j < columns; j++) a[i * n + j] -= scaled * sums[j];
  }
}

/* Reflect columns of the first rows of a matrix: a -= factor (a v) v'. */
static inline void reflect_columns(int64_t n, int64_t rows, int64_t count, const double *v,
                                   double factor, double *a) {
  for (int64_t i = 0; i < rows; i++, a += n) {
    double sum = 0;
    for (int64_t k = 0; k < count; k++) sum += a[k] * v[k];
    sum *= factor;
    for (int64_t k = 0; k < count; k++) a[k] -= sum * v[k];
  }
}

typedef struct {
  double cosine, sine;
} Rotation;

static inline void rotate_rows(int64_t count, double *x, double *y, Rotation by) {
  for (int64_t j = 0; j < count; j++) {
    double first = x[j], second = y[j];
    x[j] = by.cosine * first + by.sine * second;
    y[j] = by.cosine * second - by.sine * first;
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
