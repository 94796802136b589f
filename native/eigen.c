/* Kernels of QR factorisations, of eigenvalues of symmetric matrices, and of singular values, in
 * double precision. */
#include "factors.h"
#include "vector_powers.h"

enum { MOST_SWEEPS = 60, PANEL = 32, CHUNK = 64 };

/* Bits of a kernel's options. */
enum { LOWER = 1, FULL = 2, ECONOMIC = 4 };

#define SIGN_EXPONENT 0.31830988618379067 /* 1 / π */
#define NEGLIGIBLE(dtype) (4 * ((dtype) == FLOAT64 ? DBL_EPSILON : (double)FLT_EPSILON))

static void transpose(int64_t rows, int64_t columns, const double *from, double *to) {
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t j = 0; j < columns; j++) to[j * rows + i] = from[i * columns + j];
  }
}

/* Write the vector of a reflector, of which a column below the diagonal has all but the first. */
static void read_reflector(int64_t m, int64_t n, int64_t k, const double *a, double *v) {
  v[0] = 1;
  for (int64_t i = k + 1; i < m; i++) v[i - k] = a[i * n + k];
}

/* Write the triangular factor in place of a matrix, below it its reflectors without their first
 * elements, and their factors. Columns behind a panel of reflectors are treated few at a time, so
 * that they stay in the cache. */
static void eliminate_columns(int64_t m, int64_t n, double *a, double *factors, double *scratch) {
  double *v = scratch, *sums = scratch + m;
  int64_t least = m < n ? m : n;
  for (int64_t start = 0; start < least; start += PANEL) {
    int64_t end = start + PANEL < least ? start + PANEL : least;
    for (int64_t k = start; k < end; k++) {
      double multiple;
      for (int64_t i = k; i < m; i++) v[i - k] = a[i * n + k];
      factors[k] = reflector(m - k, v, &multiple);
      reflect_rows(n, end - k - 1, m - k, v, factors[k], a + k * n + k + 1, sums);
      a[k * n + k] = multiple;
      for (int64_t i = k + 1; i < m; i++) a[i * n + k] = v[i - k];
    }
    for (int64_t j = end; j < n; j += CHUNK) {
      for (int64_t k = start; k < end; k++) {
        read_reflector(m, n, k, a, v);
        int64_t columns = n - j < CHUNK ? n - j : CHUNK;
        reflect_rows(n, columns, m - k, v, factors[k], a + k * n + j, sums);
      }
    }
  }
}

/* Write the first columns of the product of the reflectors below the diagonal of a matrix. Columns
 * before that of a reflector have no element that it changes. */
static void write_columns(int64_t m, int64_t n, const double *a, const double *factors,
                          int64_t width, double *q, double *scratch) {
  double *v = scratch, *sums = scratch + m;
  int64_t least = m < n ? m : n;
  write_identity(m, width, q);
  for (int64_t start = 0; start < width; start += CHUNK) {
    int64_t end = start + CHUNK < width ? start + CHUNK : width;
    for (int64_t k = (least < end ? least : end) - 1; k >= 0; k--) {
      int64_t j = k > start ? k : start;
      read_reflector(m, n, k, a, v);
      reflect_rows(width, end - j, m - k, v, factors[k], q + k * width + j, sums);
    }
  }
}

static void multiply(int64_t n, double factor, double *x) {
  for (int64_t i = 0; i < n; i++) x[i] *= factor;
}

/* Reduce a symmetric matrix to tridiagonal form; its reflectors are left in its columns. */
static void tridiagonalise(int64_t n, double *a, double *d, double *e, double *factors,
                           double *scratch) {
  double *v = scratch, *p = scratch + n;
  for (int64_t k = 0; k + 1 < n; k++) {
    int64_t count = n - k - 1;
    double *rest = a + (k + 1) * n + k + 1;
    for (int64_t i = 0; i < count; i++) v[i] = rest[i * n - 1];
    double factor = factors[k] = reflector(count, v, &e[k]);
    for (int64_t i = 0; i < count; i++) p[i] = 0;
    for (int64_t i = 0; i < count; i++) add_multiple(count, v[i], rest + i * n, p);
    multiply(count, factor, p);
    add_multiple(count, -factor / 2 * dot(count, p, v), v, p);
    for (int64_t i = 0; i < count; i++) {
      double *row = rest + i * n;
      add_multiple(count, -v[i], p, row);
      add_multiple(count, -p[i], v, row);
      row[-1] = v[i];
    }
  }
  for (int64_t i = 0; i < n; i++) d[i] = a[i * (n + 1)];
}

/* Write the transpose of the product of the reflectors in the columns of a matrix. */
static void write_reflections(int64_t n, const double *a, const double *factors, double *rows,
                              double *scratch) {
  write_identity(n, n, rows);
  for (int64_t k = n - 2; k >= 0; k--) {
    for (int64_t i = k + 1; i < n; i++) scratch[i - k - 1] = a[i * n + k];
    reflect_columns(n, n - k - 1, n - k - 1, scratch, factors[k], rows + (k + 1) * (n + 1));
  }
}

/* One sweep of the implicit QL iteration over the rows from begin to end; `rows` are rotated. */
static void ql_sweep(int64_t n, int64_t begin, int64_t end, double *d, double *e, double *rows) {
  double g = (d[begin + 1] - d[begin]) / (2 * e[begin]);
  g = d[end] - d[begin] + e[begin] / (g + copysign(length_of(g, 1), g));
  Rotation by = {1, 1};
  double moved = 0;
  for (int64_t i = end - 1; i >= begin; i--) {
    double f = by.sine * e[i], b = by.cosine * e[i], r = length_of(f, g);
    e[i + 1] = r;
    if (r == 0) {
      d[i + 1] -= moved;
      e[end] = 0;
      return;
    }
    by = (Rotation){g / r, f / r};
    g = d[i + 1] - moved;
    r = (d[i] - g) * by.sine + 2 * by.cosine * b;
    moved = by.sine * r;
    d[i + 1] = g + moved;
    g = by.cosine * r - b;
    if (rows) rotate_rows(n, rows + (i + 1) * n, rows + i * n, by);
  }
  d[begin] -= moved;
  e[begin] = g;
  e[end] = 0;
}

/* Replace a diagonal by eigenvalues, e having room for n numbers; false where it does not end. */
static int ql_iteration(int64_t n, double *d, double *e, double *rows) {
  if (n) e[n - 1] = 0;
  double smallest = DBL_EPSILON * DBL_EPSILON * fmax(largest_of(n, d), largest_of(n, e));
  for (int64_t begin = 0; begin < n; begin++) {
    for (int sweep = 0;; sweep++) {
      int64_t end = begin;
      for (; end + 1 < n; end++) {
        double beside = DBL_EPSILON * (fabs(d[end]) + fabs(d[end + 1]));
        if (fabs(e[end]) <= fmax(beside, smallest)) break;
      }
      if (end == begin) break;
      if (sweep == MOST_SWEEPS) return 0;
      ql_sweep(n, begin, end, d, e, rows);
    }
  }
  return 1;
}

static void swap_rows(int64_t n, double *x, double *y) {
  for (int64_t i = 0; i < n; i++) {
    double kept = x[i];
    x[i] = y[i];
    y[i] = kept;
  }
}

/* Sort numbers, in descending order where `sign` is negative, and rows with them. */
static void sort_with_rows(int64_t count, int sign, double *values, int64_t n, double *rows,
                           int64_t m, double *others) {
  for (int64_t i = 0; i + 1 < count; i++) {
    int64_t first = i;
    for (int64_t j = i + 1; j < count; j++) {
      if (sign * values[j] < sign * values[first]) first = j;
    }
    if (first == i) continue;
    swap_rows(1, values + i, values + first);
    if (rows) swap_rows(n, rows + i * n, rows + first * n);
    if (others) swap_rows(m, others + i * m, others + first * m);
  }
}

/* Write the weights of the sum that decides the sign of a vector. */
static void write_weights(int64_t n, double *weights) {
  for (int64_t i = 0; i < n; i++) {
    double rest, logarithm = log2_parts((double)i + 1, &rest);
    weights[i] = pow_of_parts(logarithm, rest, SIGN_EXPONENT);
  }
}

static double sign_of(int64_t n, const double *row, const double *weights) {
  return dot(n, row, weights) < 0 ? -1 : 1;
}

/* Write eigenvalues in ascending order, and eigenvectors in rows unless that is NULL. */
static void eigh(int64_t n, int is_lower, const double *from, double *d, double *rows,
                 double *scratch) {
  double *a = scratch, *e = a + n * n, *factors = e + n, *rest = factors + n, largest = 0;
  int is_found = 1;
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j <= i; j++) {
      double x = is_lower ? from[i * n + j] : from[j * n + i];
      is_found &= isfinite(x) != 0;
      largest = fmax(largest, fabs(x));
      a[i * n + j] = a[j * n + i] = x;
    }
  }
  double scale = scale_of(largest);
  multiply(n * n, scale, a);
  if (is_found) {
    tridiagonalise(n, a, d, e, factors, rest);
    if (rows) write_reflections(n, a, factors, rows, rest);
    is_found = ql_iteration(n, d, e, rows);
  }
  if (!is_found) {
    fill_nan(n, d);
    if (rows) fill_nan(n * n, rows);
    return;
  }
  multiply(n, 1 / scale, d);
  sort_with_rows(n, 1, d, n, rows, 0, NULL);
  write_weights(n, rest);
  for (int64_t i = 0; rows && i < n; i++) multiply(n, sign_of(n, rows + i * n, rest), rows + i * n);
}

/* Reduce a matrix with at least as many rows as columns to bidiagonal form, its diagonals d and e;
 * the reflectors of its columns are left below, those of its rows above. */
static void bidiagonalise(int64_t m, int64_t n, double *a, double *d, double *e, double *factors,
                          double *scratch) {
  double *v = scratch, *sums = scratch + m;
  for (int64_t k = 0; k < n; k++) {
    for (int64_t i = k; i < m; i++) v[i - k] = a[i * n + k];
    factors[k] = reflector(m - k, v, &d[k]);
    reflect_rows(n, n - k - 1, m - k, v, factors[k], a + k * n + k + 1, sums);
    for (int64_t i = k + 1; i < m; i++) a[i * n + k] = v[i - k];
    if (k + 1 >= n) break;
    double *row = a + k * n + k + 1;
    factors[n + k] = reflector(n - k - 1, row, &e[k]);
    reflect_columns(n, m - k - 1, n - k - 1, row, factors[n + k], row + n);
  }
}

/* Write the right reflections of a bidiagonal form in rows: the transpose of their product. */
static void write_right(int64_t n, const double *a, const double *factors, double *rows) {
  write_identity(n, n, rows);
  for (int64_t k = n - 2; k >= 0; k--) {
    reflect_columns(n, n - k - 1, n - k - 1, a + k * n + k + 1, factors[n + k],
                    rows + (k + 1) * (n + 1));
  }
}

/* Write the first left reflections of a bidiagonal form in rows: the transpose of the columns. */
static void write_left(int64_t m, int64_t n, int64_t count, const double *a, const double *factors,
                       double *rows, double *scratch) {
  write_identity(count, m, rows);
  for (int64_t k = n - 1; k >= 0; k--) {
    read_reflector(m, n, k, a, scratch);
    reflect_columns(m, count - k, m - k, scratch, factors[k], rows + k * (m + 1));
  }
}

/* Both diagonals of a bidiagonal matrix, and rows that are rotated with it, unless NULL. */
typedef struct {
  double *d, *e, *left, *right;
  int64_t m, n;
} Bidiagonal;

static Rotation rotation_to(double f, double g, double *r) {
  *r = length_of(f, g);
  return *r == 0 ? (Rotation){1, 0} : (Rotation){f / *r, g / *r};
}

static void rotate_left(const Bidiagonal *b, int64_t i, int64_t j, Rotation by) {
  if (b->left) rotate_rows(b->m, b->left + i * b->m, b->left + j * b->m, by);
}

static void rotate_right(const Bidiagonal *b, int64_t i, int64_t j, Rotation by) {
  if (b->right) rotate_rows(b->n, b->right + i * b->n, b->right + j * b->n, by);
}

/* Zero the element beside a zero of the diagonal, by the rows that follow. */
static void clear_row(const Bidiagonal *b, int64_t k, int64_t end) {
  double f = b->e[k];
  b->e[k] = 0;
  for (int64_t i = k + 1; i <= end && f != 0; i++) {
    Rotation by = rotation_to(b->d[i], f, &b->d[i]);
    if (i < end) {
      f = -by.sine * b->e[i];
      b->e[i] *= by.cosine;
    }
    rotate_left(b, i, k, by);
  }
}

/* Zero the element above a last zero of the diagonal, by the columns before. */
static void clear_column(const Bidiagonal *b, int64_t begin, int64_t end) {
  double f = b->e[end - 1];
  b->e[end - 1] = 0;
  for (int64_t i = end - 1; i >= begin && f != 0; i--) {
    Rotation by = rotation_to(b->d[i], f, &b->d[i]);
    if (i > begin) {
      f = -by.sine * b->e[i - 1];
      b->e[i - 1] *= by.cosine;
    }
    rotate_right(b, i, end, by);
  }
}

/* Return the smaller singular value of [[f, g], [0, h]], as LAPACK's dlas2. */
static double smaller_value(double f, double g, double h) {
  double least = fmin(fabs(f), fabs(h)), most = fmax(fabs(f), fabs(h)), beside = fabs(g);
  if (least == 0) return 0;
  double sum = 1 + least / most, difference = (most - least) / most;
  if (beside < most) {
    double square = beside / most * (beside / most);
    return least * (2 / (sqrt(sum * sum + square) + sqrt(difference * difference + square)));
  }
  double ratio = most / beside;
  if (ratio == 0) return least * most / beside;
  sum *= ratio;
  difference *= ratio;
  return 2 * (least * (1 / (sqrt(1 + sum * sum) + sqrt(1 + difference * difference)))) * ratio;
}

/* One sweep of the implicit QR iteration: G. H. Golub and C. F. Van Loan, Matrix Computations, 4th
 * ed., algorithm 8.6.1. */
static void golub_kahan_sweep(const Bidiagonal *b, int64_t begin, int64_t end) {
  double *d = b->d, *e = b->e, shift = smaller_value(d[end - 1], e[end - 1], d[end]);
  double ratio = shift / fabs(d[begin]);
  if (ratio * ratio < DBL_EPSILON) shift = 0;
  double f = (fabs(d[begin]) - shift) * (copysign(1, d[begin]) + shift / d[begin]), g = e[begin];
  for (int64_t k = begin; k < end; k++) {
    double r;
    Rotation by = rotation_to(f, g, &r);
    if (k > begin) e[k - 1] = r;
    f = by.cosine * d[k] + by.sine * e[k];
    e[k] = by.cosine * e[k] - by.sine * d[k];
    g = by.sine * d[k + 1];
    d[k + 1] *= by.cosine;
    rotate_right(b, k, k + 1, by);
    by = rotation_to(f, g, &d[k]);
    f = by.cosine * e[k] + by.sine * d[k + 1];
    d[k + 1] = by.cosine * d[k + 1] - by.sine * e[k];
    if (k + 1 < end) {
      g = by.sine * e[k + 1];
      e[k + 1] *= by.cosine;
    }
    rotate_left(b, k, k + 1, by);
  }
  e[end - 1] = f;
}

/* Return the first row of the block that ends at a row, after zeros on its diagonal are cleared. */
static int64_t begin_of_bidiagonal(const Bidiagonal *b, int64_t end, double smallest) {
  int64_t k = end;
  for (; k > 0; k--) {
    double beside = fabs(b->e[k - 1]);
    if (beside <= smallest || beside <= DBL_EPSILON * (fabs(b->d[k]) + fabs(b->d[k - 1]))) {
      b->e[k - 1] = 0;
      break;
    }
    if (fabs(b->d[k - 1]) <= smallest) {
      b->d[k - 1] = 0;
      clear_row(b, k - 1, end);
      break;
    }
  }
  return k;
}

/* Replace the diagonal by singular values, which may be negative; false where it does not end. */
static int qr_iteration(const Bidiagonal *b) {
  double largest = fmax(largest_of(b->n, b->d), largest_of(b->n > 0 ? b->n - 1 : 0, b->e));
  double smallest = DBL_EPSILON / 8 * largest;
  int64_t sweeps = MOST_SWEEPS * b->n;
  for (int64_t end = b->n - 1; end > 0;) {
    int64_t begin = begin_of_bidiagonal(b, end, smallest);
    if (begin == end) {
      end--;
    } else if (fabs(b->d[end]) <= smallest) {
      b->d[end] = 0;
      clear_column(b, begin, end);
    } else if (sweeps-- == 0) {
      return 0;
    } else {
      golub_kahan_sweep(b, begin, end);
    }
  }
  return 1;
}

/* Give singular vectors in rows the signs of the left ones, and vectors without a partner, or with
 * a singular value that is a rounding error, their own. */
static void set_signs(int64_t m, int64_t left_count, double *left, int64_t n, int64_t right_count,
                      double *right, int64_t count, const double *values, double negligible,
                      double *weights) {
  write_weights(m > n ? m : n, weights);
  for (int64_t i = 0; i < left_count || i < right_count; i++) {
    int is_pair = i < count && values[i] > negligible * values[0];
    double sign = i < left_count ? sign_of(m, left + i * m, weights) : 1;
    if (i < left_count) multiply(m, sign, left + i * m);
    if (i >= right_count) continue;
    if (!is_pair) sign = sign_of(n, right + i * n, weights);
    multiply(n, sign, right + i * n);
  }
}

/* Sizes of a singular value decomposition of a matrix with m ≥ n, and its vectors in rows. */
typedef struct {
  int64_t m, n, count; /* count of left vectors */
  double *d, *left, *right;
} Decomposition;

/* Write singular values in descending order and vectors, unless these are NULL. */
static void svd(const Decomposition *s, double *a, double *scratch) {
  int64_t m = s->m, n = s->n;
  double *e = scratch, *factors = e + n, *rest = factors + 2 * n;
  double scale = scale_of(largest_of(m * n, a));
  int is_found = is_finite(m * n, a);
  if (is_found) {
    multiply(m * n, scale, a);
    bidiagonalise(m, n, a, s->d, e, factors, rest);
    if (s->left) write_left(m, n, s->count, a, factors, s->left, rest);
    if (s->right) write_right(n, a, factors, s->right);
    is_found = qr_iteration(&(Bidiagonal){s->d, e, s->left, s->right, m, n});
  }
  if (!is_found) {
    fill_nan(n, s->d);
    if (s->left) fill_nan(s->count * m, s->left);
    if (s->right) fill_nan(n * n, s->right);
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    if (s->d[i] < 0 && s->right) multiply(n, -1, s->right + i * n);
    s->d[i] = fabs(s->d[i]) / scale;
  }
  sort_with_rows(n, -1, s->d, n, s->right, m, s->left);
}

static int64_t rows_in(const Array *in) { return in->shape[in->rank - 2]; }
static int64_t columns_in(const Array *in) { return in->shape[in->rank - 1]; }

static void set_matrix(Array *out, const Array *in, int64_t rows, int64_t columns) {
  *out = *in;
  out->shape[in->rank - 2] = rows;
  out->shape[in->rank - 1] = columns;
}

static void set_vector(Array *out, const Array *in, int64_t size) {
  *out = *in;
  out->rank = in->rank - 1;
  out->shape[in->rank - 2] = size;
}

static const char *infer_qr(const Kernel *kernel, const Array *in, Array *out, size_t *scratch) {
  if (no_matrix(in)) return no_matrix(in);
  int64_t m = rows_in(in), n = columns_in(in), k = m < n ? m : n;
  int64_t rows = kernel->options & ECONOMIC ? k : m;
  *scratch = (size_t)(m * n + m * m + k + m + (m > n ? m : n)) * sizeof(double);
  if (kernel->outputs == 2) set_matrix(&out[0], in, m, rows);
  set_matrix(&out[kernel->outputs - 1], in, rows, n);
  return NULL;
}

static const char *run_qr(const Kernel *kernel, const Array *in, Array *out, void *scratch) {
  int64_t m = rows_in(in), n = columns_in(in), k = m < n ? m : n, count = matrices_of(in);
  int64_t rows = kernel->options & ECONOMIC ? k : m;
  double *a = scratch, *q = a + m * n, *factors = q + m * m, *rest = factors + k;
  for (int64_t i = 0; i < count; i++) {
    copy_bytes(a, matrix_of(in, i, a), in->dtype == FLOAT64 ? m * n * 8 : 0);
    eliminate_columns(m, n, a, factors, rest);
    if (kernel->outputs == 2) {
      write_columns(m, n, a, factors, rows, q, rest);
      write_matrix(&out[0], i, q);
    }
    for (int64_t r = 1; r < m; r++) {
      for (int64_t c = 0; c < r && c < n; c++) a[r * n + c] = 0;
    }
    write_matrix(&out[kernel->outputs - 1], i, a);
  }
  return NULL;
}

static const char *infer_eigh(const Kernel *kernel, const Array *in, Array *out, size_t *scratch) {
  if (no_matrix(in)) return no_matrix(in);
  if (rows_in(in) != columns_in(in)) return "the matrix is not square";
  size_t n = (size_t)rows_in(in);
  *scratch = (3 * n * n + 5 * n) * sizeof(double);
  set_vector(&out[0], in, rows_in(in));
  if (kernel->outputs == 2) out[1] = in[0];
  return NULL;
}

static const char *run_eigh(const Kernel *kernel, const Array *in, Array *out, void *scratch) {
  int64_t n = rows_in(in), count = matrices_of(in);
  double *a = scratch, *rows = a + n * n, *d = rows + n * n, *rest = d + n;
  for (int64_t i = 0; i < count; i++) {
    const double *from = matrix_of(in, i, a);
    eigh(n, kernel->options & LOWER, from, d, kernel->outputs == 2 ? rows : NULL, rest);
    write_numbers(&out[0], i, n, d);
    if (kernel->outputs == 1) continue;
    transpose(n, n, rows, a);
    write_matrix(&out[1], i, a);
  }
  return NULL;
}

static const char *infer_svd(const Kernel *kernel, const Array *in, Array *out, size_t *scratch) {
  if (no_matrix(in)) return no_matrix(in);
  int64_t m = rows_in(in), n = columns_in(in), least = m < n ? m : n, most = m < n ? n : m;
  int is_full = kernel->options & FULL;
  *scratch = (size_t)(2 * most * most + least * least + 4 * least + 3 * most) * sizeof(double);
  set_vector(&out[kernel->outputs == 3 ? 1 : 0], in, least);
  if (kernel->outputs == 1) return NULL;
  set_matrix(&out[0], in, m, is_full ? m : least);
  set_matrix(&out[2], in, is_full ? n : least, n);
  return NULL;
}

static const char *run_svd(const Kernel *kernel, const Array *in, Array *out, void *scratch) {
  int64_t rows = rows_in(in), columns = columns_in(in), count = matrices_of(in);
  int is_wide = rows < columns, has_vectors = kernel->outputs == 3;
  int64_t m = is_wide ? columns : rows, n = is_wide ? rows : columns;
  double *a = scratch, *left = a + m * m, *right = left + m * m, *d = right + n * n, *rest = d + n;
  Decomposition s = {m, n, kernel->options & FULL ? m : n, d, NULL, NULL};
  if (has_vectors) s.left = left, s.right = right;
  double *u = is_wide ? right : left, *v = is_wide ? left : right;
  int64_t u_count = is_wide ? n : s.count, v_count = is_wide ? s.count : n;
  for (int64_t i = 0; i < count; i++) {
    const double *from = matrix_of(in, i, is_wide ? left : a);
    if (is_wide) transpose(rows, columns, from, a);
    else if (from != a) copy_bytes(a, from, m * n * 8);
    svd(&s, a, rest);
    write_numbers(&out[has_vectors ? 1 : 0], i, n, d);
    if (!has_vectors) continue;
    set_signs(rows, u_count, u, columns, v_count, v, n, d, NEGLIGIBLE(in->dtype), rest);
    write_matrix(&out[2], i, v);
    transpose(u_count, rows, u, a);
    write_matrix(&out[0], i, a);
  }
  return NULL;
}

const Kernel EIGEN_KERNELS[] = {
    {"QR_mode_full", 1, 2, 0, BATCHED, 0, infer_qr, run_qr, FOR_ALL(run_qr)},
    {"QR_mode_economic", 1, 2, ECONOMIC, BATCHED, 0, infer_qr, run_qr, FOR_ALL(run_qr)},
    {"QR_mode_r", 1, 1, 0, BATCHED, 0, infer_qr, run_qr, FOR_ALL(run_qr)},
    {"Eigh", 1, 2, 0, BATCHED, 0, infer_eigh, run_eigh, FOR_ALL(run_eigh)},
    {"Eigh_lower", 1, 2, LOWER, BATCHED, 0, infer_eigh, run_eigh, FOR_ALL(run_eigh)},
    {"Eigvalsh", 1, 1, 0, BATCHED, 0, infer_eigh, run_eigh, FOR_ALL(run_eigh)},
    {"Eigvalsh_lower", 1, 1, LOWER, BATCHED, 0, infer_eigh, run_eigh, FOR_ALL(run_eigh)},
    {"SVD", 1, 1, 0, BATCHED, 0, infer_svd, run_svd, FOR_ALL(run_svd)},
    {"SVD_full_matrices", 1, 1, 0, BATCHED, 0, infer_svd, run_svd, FOR_ALL(run_svd)},
    {"SVD_compute_uv", 1, 3, 0, BATCHED, 0, infer_svd, run_svd, FOR_ALL(run_svd)},
    {"SVD_full_matrices_compute_uv", 1, 3, FULL, BATCHED, 0, infer_svd, run_svd, FOR_ALL(run_svd)},
    {NULL},
};
