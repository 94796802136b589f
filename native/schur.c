/* Kernels of Schur forms, and of Sylvester's equation between them, in double precision. */
#include "factors.h"

enum { MOST_SWEEPS = 60, MOST_UNKNOWNS = 4 };

/* Reduce a matrix to Hessenberg form, and multiply the columns of z by the same reflections. */
static void hessenberg(int64_t n, double *h, double *z, double *scratch) {
  double *v = scratch, *sums = scratch + n;
  for (int64_t k = 0; k + 2 < n; k++) {
    int64_t count = n - k - 1;
    double multiple;
    for (int64_t i = 0; i < count; i++) v[i] = h[(k + 1 + i) * n + k];
    double factor = reflector(count, v, &multiple);
    for (int64_t i = 0; i < count; i++) h[(k + 1 + i) * n + k] = i ? 0 : multiple;
    if (factor == 0) continue;
    reflect_rows(n, n - k - 1, count, v, factor, h + (k + 1) * (n + 1), sums);
    reflect_columns(n, n, count, v, factor, h + k + 1);
    reflect_columns(n, n, count, v, factor, z + k + 1);
  }
}

/* Return the first row of the block that ends at a row, and has no negligible element below its
 * diagonal, by the criterion of Ahues and Tisseur, LAPACK Working Note 122. */
static int64_t begin_of_block(int64_t n, int64_t end, double *h) {
  double smallest = DBL_MIN * ((double)n / DBL_EPSILON);
  int64_t k = end;
  for (; k > 0; k--) {
    double below = fabs(h[k * n + k - 1]), above = fabs(h[(k - 1) * n + k]);
    double last = h[k * n + k], before = h[(k - 1) * n + k - 1];
    if (below <= smallest) break;
    double nearby = fabs(before) + fabs(last);
    if (nearby == 0) {
      if (k >= 2) nearby += fabs(h[(k - 1) * n + k - 2]);
      if (k + 1 < n) nearby += fabs(h[(k + 1) * n + k]);
    }
    if (below > DBL_EPSILON * nearby) continue;
    double apart = fabs(before - last);
    double larger = fmax(fabs(last), apart), smaller = fmin(fabs(last), apart);
    double sum = larger + fmax(below, above);
    double product = fmin(below, above) * (fmax(below, above) / sum);
    if (product <= fmax(smallest, DBL_EPSILON * (smaller * (larger / sum)))) break;
  }
  if (k > 0) h[k * n + k - 1] = 0;
  return k;
}

/* Two shifts: real ± i width. */
typedef struct {
  double real, width;
} Shifts;

/* Return the eigenvalues of [[a, b], [c, d]], of two real ones twice the one nearer to d. */
static Shifts shifts_of(double a, double b, double c, double d) {
  double scale = fabs(a) + fabs(b) + fabs(c) + fabs(d);
  if (scale == 0) return (Shifts){0, 0};
  a /= scale, b /= scale, c /= scale, d /= scale;
  double mean = (a + d) / 2, determinant = (a - mean) * (d - mean) - b * c;
  double root = sqrt(fabs(determinant));
  if (determinant >= 0) return (Shifts){mean * scale, root * scale};
  double nearer = fabs(mean + root - d) <= fabs(mean - root - d) ? mean + root : mean - root;
  return (Shifts){nearer * scale, 0};
}

/* Return the shifts of a sweep; every tenth has others, which end a cycle. */
static Shifts shifts_for(int64_t n, int64_t begin, int64_t end, int sweep, const double *h) {
  if (sweep % 20 == 10) {
    double size = 0.75 * (fabs(h[(begin + 1) * n + begin]) + fabs(h[(begin + 2) * n + begin + 1]));
    double corner = size + h[begin * n + begin];
    return shifts_of(corner, -0.4375 * size, size, corner);
  }
  const double *upper = h + (end - 1) * n + end - 1, *lower = upper + n;
  if (sweep % 20 == 0 && sweep) {
    double size = 0.75 * (fabs(lower[0]) + fabs(h[(end - 1) * n + end - 2]));
    double corner = size + lower[1];
    return shifts_of(corner, -0.4375 * size, size, corner);
  }
  return shifts_of(upper[0], upper[1], lower[0], lower[1]);
}

/* Write the first column of the product of shifted matrices, from the row at which a sweep may
 * begin, and return the row. */
static int64_t first_column(int64_t n, int64_t begin, int64_t end, Shifts shifts, const double *h,
                            double v[3]) {
  for (int64_t m = end - 2;; m--) {
    const double *row = h + m * n + m, *next = row + n, *last = next + n;
    double below = next[0], apart = row[0] - shifts.real;
    double scale = fabs(apart) + fabs(shifts.width) + fabs(below);
    double ratio = below / scale;
    v[0] = ratio * row[1] + apart * (apart / scale) +
           shifts.width * (shifts.width / scale);
    v[1] = ratio * (row[0] + next[1] - shifts.real - shifts.real);
    v[2] = ratio * last[1];
    scale = fabs(v[0]) + fabs(v[1]) + fabs(v[2]);
    for (int i = 0; i < 3; i++) v[i] /= scale;
    if (m == begin) return m;
    double nearby = fabs(row[-n - 1]) + fabs(row[0]) + fabs(next[1]);
    if (fabs(row[-1]) * (fabs(v[1]) + fabs(v[2])) <= DBL_EPSILON * fabs(v[0]) * nearby) return m;
  }
}

/* One sweep of Francis's iteration with two shifts, over the rows from begin to end. */
static void sweep_block(int64_t n, int64_t begin, int64_t end, Shifts shifts, double *h, double *z,
                        double *sums) {
  double v[3];
  int64_t start = first_column(n, begin, end, shifts, h, v);
  for (int64_t k = start; k < end; k++) {
    int64_t count = end - k + 1 < 3 ? end - k + 1 : 3;
    for (int64_t i = 0; k > start && i < count; i++) v[i] = h[(k + i) * n + k - 1];
    double multiple, factor = reflector(count, v, &multiple);
    if (k > start) {
      for (int64_t i = 0; i < count; i++) h[(k + i) * n + k - 1] = i ? 0 : multiple;
    } else if (k > begin) {
      h[k * n + k - 1] *= 1 - factor;
    }
    int64_t rows = k + 4 < end + 1 ? k + 4 : end + 1;
    reflect_rows(n, n - k, count, v, factor, h + k * (n + 1), sums);
    reflect_columns(n, rows, count, v, factor, h + k);
    reflect_columns(n, n, count, v, factor, z + k);
  }
}

/* Make the block [[a, b], [c, d]] triangular, whose eigenvalues are real and apart. */
static Rotation split_block(double *a, double *b, double *c, double *d, double p, double scale,
                            double z, double larger, double smaller) {
  z = p + copysign(sqrt(scale) * sqrt(z), p);
  *a = *d + z;
  *d -= larger / z * smaller;
  double length = length_of(*c, z);
  Rotation rotation = {z / length, *c / length};
  *b -= *c;
  *c = 0;
  return rotation;
}

/* Make the diagonal elements of a block equal, and the block triangular if it then can be. */
static Rotation equalise_block(double *a, double *b, double *c, double *d) {
  double p = (*a - *d) / 2, sigma = *b + *c, length = length_of(sigma, *a - *d);
  double cosine = sqrt((1 + fabs(sigma) / length) / 2);
  double sine = -(p / (length * cosine)) * copysign(1, sigma);
  double aa = *a * cosine + *b * sine, bb = *b * cosine - *a * sine;
  double cc = *c * cosine + *d * sine, dd = *d * cosine - *c * sine;
  double mean = (aa * cosine + cc * sine + dd * cosine - bb * sine) / 2;
  *b = bb * cosine + dd * sine;
  *c = cc * cosine - aa * sine;
  *a = *d = mean;
  if (*c == 0) return (Rotation){cosine, sine};
  if (*b == 0) {
    *b = -*c;
    *c = 0;
    return (Rotation){-sine, cosine};
  }
  if ((*b < 0) != (*c < 0)) return (Rotation){cosine, sine};
  double of_b = sqrt(fabs(*b)), of_c = sqrt(fabs(*c)), root = copysign(of_b * of_c, *c);
  double inverse = 1 / sqrt(fabs(*b + *c)), cosine2 = of_b * inverse, sine2 = of_c * inverse;
  *a = mean + root;
  *d = mean - root;
  *b -= *c;
  *c = 0;
  return (Rotation){cosine * cosine2 - sine * sine2, cosine * sine2 + sine * cosine2};
}

/* Bring a block to standard form, as LAPACK's dlanv2: it is triangular, or its diagonal elements
 * are equal and the others of different signs. */
static Rotation standard_block(double *a, double *b, double *c, double *d) {
  if (*c == 0) return (Rotation){1, 0};
  if (*b == 0) {
    double first = *a;
    *a = *d;
    *d = first;
    *b = -*c;
    *c = 0;
    return (Rotation){0, 1};
  }
  if (*a == *d && (*b < 0) != (*c < 0)) return (Rotation){1, 0};
  double p = (*a - *d) / 2, larger = fmax(fabs(*b), fabs(*c));
  double smaller = fmin(fabs(*b), fabs(*c)) * ((*b < 0) == (*c < 0) ? 1 : -1);
  double scale = fmax(fabs(p), larger), z = p / scale * p + larger / scale * smaller;
  if (z >= 4 * DBL_EPSILON) return split_block(a, b, c, d, p, scale, z, larger, smaller);
  return equalise_block(a, b, c, d);
}

static void rotate_columns(int64_t n, int64_t rows, double *a, Rotation by) {
  for (int64_t i = 0; i < rows; i++, a += n) {
    double first = a[0], second = a[1];
    a[0] = by.cosine * first + by.sine * second;
    a[1] = by.cosine * second - by.sine * first;
  }
}

static void finish_block(int64_t n, int64_t k, double *h, double *z) {
  double *row = h + k * n + k, *next = row + n;
  Rotation by = standard_block(row, row + 1, next, next + 1);
  rotate_rows(n - k - 2, row + 2, next + 2, by);
  rotate_columns(n, k, h + k, by);
  rotate_columns(n, n, z + k, by);
}

/* Reduce a Hessenberg matrix to standard Schur form; false where that does not end. */
static int iterate(int64_t n, double *h, double *z, double *scratch) {
  int sweep = 0;
  for (int64_t end = n - 1; end >= 0;) {
    int64_t begin = begin_of_block(n, end, h);
    if (begin + 1 < end) {
      if (sweep >= MOST_SWEEPS) return 0;
      sweep_block(n, begin, end, shifts_for(n, begin, end, sweep++, h), h, z, scratch);
      continue;
    }
    if (begin < end) finish_block(n, begin, h, z);
    end = begin - 1;
    sweep = 0;
  }
  return 1;
}

/* Write T and Z with A = Z T Z', NaN without them; T may be A. */
static void schur(int64_t n, const double *a, double *t, double *z, double *scratch) {
  double scale = scale_of(largest_of(n * n, a));
  int is_found = is_finite(n * n, a);
  for (int64_t i = 0; i < n * n; i++) t[i] = a[i] * scale;
  write_identity(n, n, z);
  if (is_found) {
    hessenberg(n, t, z, scratch);
    is_found = iterate(n, t, z, scratch);
  }
  for (int64_t i = 0; i < n * n; i++) t[i] /= scale;
  if (!is_found) {
    fill_nan(n * n, t);
    fill_nan(n * n, z);
  }
}

/* Return the rows of the block that begins at a row. */
static int64_t rows_of(int64_t n, int64_t k, const double *t) {
  return k + 1 < n && t[(k + 1) * n + k] != 0 ? 2 : 1;
}

static double width_of(int64_t n, int64_t k, int64_t rows, const double *t) {
  const double *row = t + k * n + k;
  return rows == 2 ? sqrt(fabs(row[1])) * sqrt(fabs(row[n])) : 0;
}

/* Solve up to four equations by elimination with the largest pivots of all, in place. */
static void eliminate(int count, double m[MOST_UNKNOWNS][MOST_UNKNOWNS], double *x) {
  int order[MOST_UNKNOWNS] = {0, 1, 2, 3};
  for (int k = 0; k < count; k++) {
    int row = k, column = k;
    for (int i = k; i < count; i++) {
      for (int j = k; j < count; j++) {
        if (fabs(m[i][j]) > fabs(m[row][column])) row = i, column = j;
      }
    }
    for (int j = 0; j < count; j++) {
      double kept = m[k][j];
      m[k][j] = m[row][j];
      m[row][j] = kept;
    }
    for (int i = 0; i < count; i++) {
      double kept = m[i][k];
      m[i][k] = m[i][column];
      m[i][column] = kept;
    }
    double kept = x[k];
    x[k] = x[row];
    x[row] = kept;
    int unknown = order[k];
    order[k] = order[column];
    order[column] = unknown;
    for (int i = k + 1; i < count; i++) {
      double factor = m[i][k] / m[k][k];
      for (int j = k + 1; j < count; j++) m[i][j] -= factor * m[k][j];
      x[i] -= factor * x[k];
    }
  }
  double found[MOST_UNKNOWNS];
  for (int i = count - 1; i >= 0; i--) {
    double sum = x[i];
    for (int j = i + 1; j < count; j++) sum -= m[i][j] * found[order[j]];
    found[order[i]] = sum / m[i][i];
  }
  for (int i = 0; i < count; i++) x[i] = found[i];
}

/* Sizes and scaled matrices of Sylvester's equation A X + X B = C. */
typedef struct {
  int64_t m, n;
  const double *a, *b;
  double scale;
} Equation;

/* Replace a block of the right-hand side by the solution; false without one. */
static int solve_pair(const Equation *e, int64_t k, int64_t l, int64_t rows, int64_t columns,
                      double *x) {
  const double *a = e->a + k * e->m + k, *b = e->b + l * e->n + l;
  double sigma = (a[0] + b[0]) * e->scale;
  double apart = width_of(e->m, k, rows, e->a) - width_of(e->n, l, columns, e->b);
  if (!(length_of(sigma, apart * e->scale) > DBL_EPSILON)) return 0;
  double matrix[MOST_UNKNOWNS][MOST_UNKNOWNS] = {{0}}, block[MOST_UNKNOWNS];
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t j = 0; j < columns; j++) {
      double *equation = matrix[i * columns + j];
      for (int64_t c = 0; c < rows; c++) equation[c * columns + j] += a[i * e->m + c] * e->scale;
      for (int64_t c = 0; c < columns; c++) equation[i * columns + c] += b[c * e->n + j] * e->scale;
      block[i * columns + j] = x[i * e->n + j];
    }
  }
  eliminate((int)(rows * columns), matrix, block);
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t j = 0; j < columns; j++) x[i * e->n + j] = block[i * columns + j];
  }
  return 1;
}

/* Subtract from the rows above, and from the columns behind, what a block of the solution gives. */
static void subtract_block(const Equation *e, int64_t k, int64_t l, int64_t rows, int64_t columns,
                           double *x) {
  for (int64_t r = k; r < k + rows; r++) {
    for (int64_t i = 0; i < k; i++) {
      double factor = e->a[i * e->m + r] * e->scale;
      for (int64_t j = l; j < l + columns; j++) x[i * e->n + j] -= factor * x[r * e->n + j];
    }
    for (int64_t c = l; c < l + columns; c++) {
      double factor = x[r * e->n + c] * e->scale;
      for (int64_t j = l + columns; j < e->n; j++) x[r * e->n + j] -= factor * e->b[c * e->n + j];
    }
  }
}

/* Replace C by the solution: columns of blocks from the left, in each the last rows first. */
static int solve_blocks(const Equation *e, double *x) {
  for (int64_t l = 0; l < e->n;) {
    int64_t columns = rows_of(e->n, l, e->b);
    for (int64_t end = e->m; end > 0;) {
      int64_t rows = end > 1 ? rows_of(e->m, end - 2, e->a) : 1, k = end - rows;
      if (!solve_pair(e, k, l, rows, columns, x + k * e->n + l)) return 0;
      subtract_block(e, k, l, rows, columns, x);
      end = k;
    }
    l += columns;
  }
  return 1;
}

static void sylvester(int64_t m, int64_t n, const double *a, const double *b, const double *c,
                      double *x) {
  double scale = scale_of(fmax(largest_of(m * m, a), largest_of(n * n, b)));
  Equation equation = {m, n, a, b, scale};
  copy_bytes(x, c, m * n * (int64_t)sizeof *x);
  int is_found = is_finite(m * m, a) && is_finite(n * n, b) && solve_blocks(&equation, x);
  for (int64_t i = 0; i < m * n; i++) x[i] = is_found ? x[i] * scale : NAN;
}

static const char *check_matrices(const Kernel *kernel, const Array *in) {
  for (int i = 0; i < kernel->inputs; i++) {
    if (no_matrix(&in[i])) return no_matrix(&in[i]);
    if (in[i].rank != in[0].rank) return "ranks differ";
    const int64_t *shape = in[i].shape + in[i].rank - 2;
    if (i < 2 && shape[0] != shape[1]) return "the matrix is not square";
    for (int axis = 0; axis < in[i].rank - 2; axis++) {
      if (in[i].shape[axis] != in[0].shape[axis]) return "sizes of the operands differ";
    }
  }
  return NULL;
}

static const char *infer_schur(const Kernel *kernel, const Array *in, Array *out, size_t *scratch) {
  const char *message = check_matrices(kernel, in);
  if (message) return message;
  size_t n = (size_t)in[0].shape[in[0].rank - 1];
  *scratch = (2 * n * n + 2 * n) * sizeof(double);
  out[0] = out[1] = in[0];
  return NULL;
}

static const char *infer_triangular(const Kernel *kernel, const Array *in, Array *out,
                                    size_t *scratch) {
  (void)kernel;
  if (in[0].rank != 3 || in[0].shape[2] != 2 * in[0].shape[1]) return "sizes of the operands differ";
  if (no_matrix(in)) return no_matrix(in);
  size_t n = (size_t)in[0].shape[1];
  *scratch = (4 * n * n + 2 * n) * sizeof(double);
  out[0] = out[1] = in[0];
  out[1].rank = 1;
  return NULL;
}

static const char *infer_sylvester(const Kernel *kernel, const Array *in, Array *out,
                                   size_t *scratch) {
  const char *message = check_matrices(kernel, in);
  if (message) return message;
  const int64_t *shape = in[2].shape + in[2].rank - 2;
  if (shape[0] != in[0].shape[in[0].rank - 1] || shape[1] != in[1].shape[in[1].rank - 1]) {
    return "incompatible dimensions";
  }
  size_t m = (size_t)shape[0], n = (size_t)shape[1];
  *scratch = (m * m + n * n + 2 * m * n) * sizeof(double);
  out[0] = in[2];
  return NULL;
}

static const char *run_schur(const Kernel *kernel, const Array *in, Array *out, void *scratch) {
  (void)kernel;
  int64_t n = in[0].shape[in[0].rank - 1], count = matrices_of(in);
  double *t = scratch, *z = t + n * n, *rest = z + n * n;
  for (int64_t i = 0; i < count; i++) {
    schur(n, matrix_of(in, i, t), t, z, rest);
    write_matrix(&out[0], i, t);
    write_matrix(&out[1], i, z);
  }
  return NULL;
}

static const char *run_hessenberg(const Kernel *kernel, const Array *in, Array *out, void *scratch) {
  (void)kernel;
  int64_t n = in[0].shape[in[0].rank - 1], count = matrices_of(in);
  double *h = scratch, *q = h + n * n, *rest = q + n * n;
  for (int64_t i = 0; i < count; i++) {
    const double *a = matrix_of(in, i, h);
    if (a != h) copy_bytes(h, a, n * n * (int64_t)sizeof *h);
    write_identity(n, n, q);
    hessenberg(n, h, q, rest);
    write_matrix(&out[0], i, h);
    write_matrix(&out[1], i, q);
  }
  return NULL;
}

/* Hessenberg matrices beside transposed orthogonal ones become quasi-triangular. */
static const char *run_triangular(const Kernel *kernel, const Array *in, Array *out, void *scratch) {
  (void)kernel;
  int64_t n = in[0].shape[1];
  double *rows = scratch, *h = rows + 2 * n * n, *z = h + n * n, *rest = z + n * n;
  for (int64_t i = 0; i < in[0].shape[0]; i++) {
    const double *from = matrix_of(in, i, rows);
    for (int64_t k = 0; k < n * n; k++) {
      h[k] = from[k / n * 2 * n + k % n];
      z[k] = from[k % n * 2 * n + n + k / n];
    }
    double failed = iterate(n, h, z, rest) ? 0 : NAN;
    for (int64_t k = 0; k < n * n; k++) {
      rows[k / n * 2 * n + k % n] = h[k];
      rows[k % n * 2 * n + n + k / n] = z[k];
    }
    write_matrix(&out[0], i, rows);
    write_numbers(&out[1], i, 1, &failed);
  }
  return NULL;
}

static const char *run_sylvester(const Kernel *kernel, const Array *in, Array *out, void *scratch) {
  (void)kernel;
  int64_t m = in[2].shape[in[2].rank - 2], n = in[2].shape[in[2].rank - 1];
  int64_t count = matrices_of(&in[2]);
  double *a = scratch, *b = a + m * m, *c = b + n * n, *x = c + m * n;
  for (int64_t i = 0; i < count; i++) {
    sylvester(m, n, matrix_of(&in[0], i, a), matrix_of(&in[1], i, b), matrix_of(&in[2], i, c), x);
    write_matrix(&out[0], i, x);
  }
  return NULL;
}

const Kernel SCHUR_KERNELS[] = {
    {"Schur_output_real", 1, 2, 0, BATCHED, 0, infer_schur, run_schur, FOR_ALL(schur)},
    {"Hessenberg", 1, 2, 0, 0, 0, infer_schur, run_hessenberg, FOR_ALL(run_hessenberg)},
    {"QuasiTriangular", 1, 2, 0, 0, 0, infer_triangular, run_triangular, FOR_ALL(run_triangular)},
    {"TRSYL", 3, 1, 0, BATCHED, 0, infer_sylvester, run_sylvester, FOR_ALL(sylvester)},
    {NULL},
};
