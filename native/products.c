/* Products of matrices, summed in an order that depends on sizes only. */
#include "planners.h"
#include "threads.h"

/* A matrix in memory: elements from one row, and from one column, to the next. */
typedef struct {
  int64_t row, column;
} Strides;

/* Integers wrap around, so that the order of additions is free. */
#ifdef __wasm__
#define SMALL __attribute__((minsize))
#else
#define SMALL
#endif
#define PRODUCT(name, T)                                                                     \
  static SMALL void product_##name(void *to, const void *left, const void *right, int64_t m,       \
                             int64_t k, int64_t n, Strides sa, Strides sb) {                 \
    T *c = to;                                                                               \
    const T *a = left, *b = right;                                                           \
    for (int64_t i = 0; i < m; i++, c += n) {                                                \
      for (int64_t j = 0; j < n; j++) c[j] = 0;                                              \
      for (int64_t p = 0; p < k; p++) {                                                      \
        const T x = a[i * sa.row + p * sa.column];                                           \
        for (int64_t j = 0; j < n; j++) c[j] += x * b[p * sb.row + j * sb.column];           \
      }                                                                                      \
    }                                                                                        \
  }
PRODUCT(i64, uint64_t)
PRODUCT(i32, uint32_t)

#define JOIN(x, y) x##_##y
#define EXPANDED(x, y) JOIN(x, y)
#define NAME(x) EXPANDED(x, SUFFIX)

#define REAL double
#define LANES 4
#define SUFFIX f64
#define TARGET
#include "products.inc"
#undef SUFFIX
#undef TARGET
#ifdef WIDE
#define SUFFIX f64_wide
#define TARGET WIDE
#include "products.inc"
#undef SUFFIX
#undef TARGET
#endif
#undef REAL
#undef LANES

#define REAL float
#define LANES 8
#define SUFFIX f32
#define TARGET
#include "products.inc"
#undef SUFFIX
#undef TARGET
#ifdef WIDE
#define SUFFIX f32_wide
#define TARGET WIDE
#include "products.inc"
#undef SUFFIX
#undef TARGET
#endif

typedef void (*Multiply)(void *c, const void *a, const void *b, int64_t m, int64_t k, int64_t n,
                         Strides sa, Strides sb);

static Multiply multiply_for(Plan *plan, int dtype) {
#ifdef WIDE
  if (dtype == FLOAT64 && has_wide_vectors()) return product_f64_wide;
  if (dtype == FLOAT32 && has_wide_vectors()) return product_f32_wide;
#endif
  switch (dtype) {
    case FLOAT64: return product_f64;
    case FLOAT32: return product_f32;
    case INT64: case UINT64: return product_i64;
    case INT32: case UINT32: return product_i32;
    default: refuse(plan, "a product without kernel");
  }
}

typedef struct {
  Multiply multiply;
  int64_t m, k, n, batches, bytes;
  Strides a, b;
  int64_t *a_offset, *b_offset; /* of each product of a batch */
  double alpha, beta;
  int dtype;
  int64_t c_row, c_column; /* of the addend of a Gemm */
  int parts;               /* that threads run at once: of the rows, or of the long sums */
  int64_t chunks;          /* of long sums; 1 for others */
  char *sums;              /* of the chunks */
} Product;

/* A sum of more than two chunks of terms is the sum of those of its chunks, where these are small. */
enum { CHUNK = 1 << 14, MOST_SUMS = 256 };

/* Set how a product is divided: by its chunks on all machines, and among threads. */
static void divide(Plan *plan, Product *p) {
  int is_float = p->dtype == FLOAT64 || p->dtype == FLOAT32;
  p->chunks = p->parts = 1;
  if (is_float && p->k > 2 * CHUNK && p->m * p->n <= MOST_SUMS) {
    p->chunks = (p->k + CHUNK - 1) / CHUNK;
    p->sums = memory(plan, (size_t)(p->chunks * p->m * p->n * p->bytes));
  }
  int parts = parts_of_work(p->m * p->k * p->n / 2, threads_of(plan));
  if (p->chunks > 1) p->parts = parts < p->chunks ? parts : (int)p->chunks;
  else if (p->m >= 64 * parts) p->parts = parts;
}

/* A product that is divided. */
typedef struct {
  const Product *product;
  char *c;
  const char *a, *b;
} Divided;

static void multiply_rows(void *of, int part) {
  const Divided *divided = of;
  const Product *p = divided->product;
  int64_t rows = (p->m / p->parts + 3) / 4 * 4, first = part * rows;
  int64_t count = part + 1 < p->parts ? rows : p->m - first;
  p->multiply(divided->c + first * p->n * p->bytes, divided->a + first * p->a.row * p->bytes,
              divided->b, count, p->k, p->n, p->a, p->b);
}

static void multiply_chunks(void *of, int part) {
  const Divided *divided = of;
  const Product *p = divided->product;
  for (int64_t i = part; i < p->chunks; i += p->parts) {
    int64_t first = i * CHUNK, terms = p->k - first < CHUNK ? p->k - first : CHUNK;
    p->multiply(p->sums + i * p->m * p->n * p->bytes, divided->a + first * p->a.column * p->bytes,
                divided->b + first * p->b.row * p->bytes, p->m, terms, p->n, p->a, p->b);
  }
}

#define ADD_CHUNKS(T)                                                            \
  for (int64_t i = 0; i < p->chunks; i++) {                                      \
    const T *sums = (const T *)p->sums + i * size;                               \
    for (int64_t j = 0; j < size; j++) ((T *)c)[j] = i ? ((T *)c)[j] + sums[j] : sums[j]; \
  }

static void multiply(const Product *p, char *c, const char *a, const char *b) {
  Divided divided = {p, c, a, b};
  if (p->chunks > 1) {
    const int64_t size = p->m * p->n;
    run_parts(multiply_chunks, &divided, p->parts);
    if (p->dtype == FLOAT64) ADD_CHUNKS(double)
    else ADD_CHUNKS(float)
  } else if (p->parts > 1) {
    run_parts(multiply_rows, &divided, p->parts);
  } else {
    p->multiply(c, a, b, p->m, p->k, p->n, p->a, p->b);
  }
}

static const char *run_products(Step *step) {
  const Product *p = step->extra;
  for (int64_t i = 0; i < p->batches; i++) {
    multiply(p, step->out + i * p->m * p->n * p->bytes, step->in[0] + p->a_offset[i],
             step->in[1] + p->b_offset[i]);
  }
  return NULL;
}

/* Return the offset of each matrix of a stack that is broadcast to batches of a shape. */
static int64_t *offsets_of(Plan *plan, const Array *given, int rank, const int64_t *batch,
                           int64_t count) {
  int64_t *offsets = memory(plan, (size_t)(count + 1) * sizeof *offsets);
  int64_t strides[MOST_AXES], at[MOST_AXES] = {0};
  strides_of(given, strides);
  int skipped = rank - (given->rank - 2);
  for (int64_t i = 0; i < count; i++) {
    for (int axis = 0; axis < given->rank - 2; axis++) {
      if (given->shape[axis] != 1) offsets[i] += at[axis + skipped] * strides[axis];
    }
    for (int axis = rank - 1; axis >= 0 && ++at[axis] == batch[axis]; axis--) at[axis] = 0;
  }
  return offsets;
}

void plan_mat_mul(Plan *plan, const Instruction *instruction) {
  Array a = *operand(plan, instruction, 0), b = *operand(plan, instruction, 1);
  if (!a.rank || !b.rank || a.dtype != b.dtype) refuse(plan, "a product of numbers");
  int is_row = a.rank == 1, is_column = b.rank == 1, rank = 0;
  if (is_row) a.rank = 2, a.shape[1] = a.shape[0], a.shape[0] = 1;
  if (is_column) b.rank = 2, b.shape[1] = 1;
  int64_t m = a.shape[a.rank - 2], k = a.shape[a.rank - 1], n = b.shape[b.rank - 1];
  int64_t shape[MOST_AXES], batches = 1;
  if (b.shape[b.rank - 2] != k) refuse(plan, "sizes of a product differ");
  int batch_axes = (a.rank > b.rank ? a.rank : b.rank) - 2;
  for (int axis = 0; axis < batch_axes; axis++) {
    int from_a = axis - batch_axes + a.rank - 2, from_b = axis - batch_axes + b.rank - 2;
    int64_t x = from_a < 0 ? 1 : a.shape[from_a], y = from_b < 0 ? 1 : b.shape[from_b];
    if (x != 1 && y != 1 && x != y) refuse(plan, "sizes of a product differ");
    shape[rank++] = x == 1 ? y : x;
    batches *= shape[axis];
  }
  if (!is_row) shape[rank++] = m;
  if (!is_column) shape[rank++] = n;
  set_shape(plan, instruction->out[0], rank, shape);
  Product *product = memory(plan, sizeof *product);
  *product = (Product){multiply_for(plan, a.dtype), m, k, n, batches,
                       (int64_t)bytes_of_element(a.dtype), {k, 1}, {n, 1},
                       offsets_of(plan, &a, batch_axes, shape, batches),
                       offsets_of(plan, &b, batch_axes, shape, batches), 1, 0, a.dtype, 0, 0,
                       1, 1, NULL};
  divide(plan, product);
  Step *step = emit(plan, run_products);
  step->extra = product;
  reads(plan, &step->in[0], instruction->in[0], 0);
  reads(plan, &step->in[1], instruction->in[1], 0);
  writes(plan, &step->out, instruction->out[0], 0);
}

#define ADD_SCALED(T)                                                                     \
  for (int64_t i = 0; i < p->m; i++) {                                                    \
    for (int64_t j = 0; j < p->n; j++) {                                                  \
      T *at = (T *)step->out + i * p->n + j;                                              \
      T scaled = p->alpha == 1 ? *at : (T)p->alpha * *at;                                 \
      if (!step->in[2]) *at = scaled;                                                     \
      else {                                                                              \
        T c = ((const T *)step->in[2])[i * p->c_row + j * p->c_column];                   \
        *at = scaled + (p->beta == 1 ? c : (T)p->beta * c);                               \
      }                                                                                   \
    }                                                                                     \
  }

static const char *run_gemm(Step *step) {
  const Product *p = step->extra;
  multiply(p, step->out, step->in[0], step->in[1]);
  if (p->alpha == 1 && !step->in[2]) return NULL;
  if (p->dtype == FLOAT64) ADD_SCALED(double)
  else ADD_SCALED(float)
  return NULL;
}

void plan_gemm(Plan *plan, const Instruction *instruction) {
  Array a = *operand(plan, instruction, 0), b = *operand(plan, instruction, 1);
  int64_t transposes_a = instruction->attribute[0], transposes_b = instruction->attribute[1];
  if (a.rank != 2 || b.rank != 2 || a.dtype != b.dtype) refuse(plan, "a Gemm of other than matrices");
  if (a.dtype != FLOAT64 && a.dtype != FLOAT32) refuse(plan, "a product without kernel");
  int64_t m = a.shape[transposes_a ? 1 : 0], k = a.shape[transposes_a ? 0 : 1];
  int64_t n = b.shape[transposes_b ? 0 : 1], shape[2] = {m, n};
  if (b.shape[transposes_b ? 1 : 0] != k) refuse(plan, "sizes of a product differ");
  Product *product = memory(plan, sizeof *product);
  *product = (Product){.multiply = multiply_for(plan, a.dtype), .m = m, .k = k, .n = n,
                       .bytes = (int64_t)bytes_of_element(a.dtype), .dtype = a.dtype};
  product->a = transposes_a ? (Strides){1, m} : (Strides){k, 1};
  product->b = transposes_b ? (Strides){1, k} : (Strides){n, 1};
  divide(plan, product);
  memcpy(&product->alpha, &instruction->attribute[2], sizeof(double));
  memcpy(&product->beta, &instruction->attribute[3], sizeof(double));
  set_shape(plan, instruction->out[0], 2, shape);
  Step *step = emit(plan, run_gemm);
  step->extra = product;
  if (has_operand(instruction, 2)) {
    Array c = *operand(plan, instruction, 2);
    int64_t rows = c.rank > 1 ? c.shape[c.rank - 2] : 1, columns = c.rank ? c.shape[c.rank - 1] : 1;
    if (c.rank > 2 || (rows != 1 && rows != m) || (columns != 1 && columns != n)) {
      refuse(plan, "sizes of a product differ");
    }
    product->c_row = rows == 1 ? 0 : columns;
    product->c_column = columns == 1 ? 0 : 1;
    reads(plan, &step->in[2], instruction->in[2], 0);
  }
  reads(plan, &step->in[0], instruction->in[0], 0);
  reads(plan, &step->in[1], instruction->in[1], 0);
  writes(plan, &step->out, instruction->out[0], 0);
}
