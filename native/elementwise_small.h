/* Loops of elementwise kernels for one type in the module of WebAssembly, which pages load: one loop
 * serves arrays and numbers, and functions of float32 are those of float64. */

#define SMALL __attribute__((minsize))
#define LANES (16 / (int)sizeof(T))
#define OUT(R) (R *)part_at(element, 0, start)
#define IN(i, type) (const type *)part_at(element, i, start)
/* Elements from one of an operand to the next. */
#define STEP(i) ((intptr_t)(~element->numbers >> (i - 1) & 1))

#define UNARY_KERNEL(name, R, expression)                                                  \
  static SMALL void S(name)(const Element *element, int64_t start, int64_t n) {            \
    R *out = OUT(R);                                                                                \
    const T *in = IN(1, T);                                                                \
    for (const R *end = out + n; out < end; out++, in++) {                                 \
      const T x = *in;                                                                     \
      *out = (R)(expression);                                                              \
    }                                                                                      \
  }
#define BINARY_KERNEL(name, R, expression)                                                 \
  static SMALL void S(name)(const Element *element, int64_t start, int64_t n) {            \
    R *out = OUT(R);                                                                                \
    const T *a = IN(1, T), *b = IN(2, T);                                                  \
    const intptr_t left = STEP(1), right = STEP(2);                                        \
    for (const R *end = out + n; out < end; out++, a += left, b += right) {                \
      const T x = *a, y = *b;                                                              \
      *out = (R)(expression);                                                              \
    }                                                                                      \
  }
UNARY(UNARY_KERNEL)
BINARY(BINARY_KERNEL)
#ifndef IS_SECOND
SHARED_UNARY(UNARY_KERNEL)
SHARED_BINARY(BINARY_KERNEL)
#endif

#if IS_FLOAT
typedef T S(Vector) __attribute__((ext_vector_type(LANES), aligned(sizeof(T))));

/* Compute whole vectors; `numbers` has a bit for each operand that is a number. */
typedef void (*S(OfVectors))(T *restrict out, const T *a, const T *b, int count, int numbers);

/* Compute whole vectors, and one more of the elements after them. */
static void S(in_vectors)(S(OfVectors) run, T *out, const T *a, const T *b, int n, int numbers) {
  T left[LANES] = {0}, right[LANES] = {0}, result[LANES];
  int whole = n / LANES * LANES;
  if (whole) run(out, a, b, whole, numbers);
  if (whole == n) return;
  for (int k = 0; k < n - whole; k++) {
    left[k] = a[numbers & 1 ? 0 : whole + k];
    right[k] = b[numbers & 2 ? 0 : whole + k];
  }
  run(result, left, right, LANES, 0);
  for (int k = 0; k < n - whole; k++) out[whole + k] = result[k];
}

#define VECTOR_AT(x) (*(const S(Vector) *)(x))
#define VECTOR_LOOP(left, right, expression)                                               \
  for (int i = 0; i < count; i += LANES) {                                                 \
    const S(Vector) x = left, y = right;                                                   \
    *(S(Vector) *)(out + i) = expression;                                                  \
  }
#define VECTOR_KERNEL(name, R, expression)                                                 \
  static __attribute__((noinline)) void S(name##_of_vectors)(                              \
      T *restrict out, const T *a, const T *b, int count, int numbers) {                   \
    if (numbers & 1) VECTOR_LOOP(*a, VECTOR_AT(b + i), expression)                         \
    else if (numbers & 2) VECTOR_LOOP(VECTOR_AT(a + i), *b, expression)                    \
    else VECTOR_LOOP(VECTOR_AT(a + i), VECTOR_AT(b + i), expression)                       \
  }                                                                                        \
  static SMALL void S(name)(const Element *element, int64_t start, int64_t n) {            \
    S(in_vectors)(S(name##_of_vectors), OUT(T), IN(1, T), IN(2, T), (int)n, element->numbers); \
  }
VECTOR_BINARY(VECTOR_KERNEL)
#undef VECTOR_KERNEL
#undef VECTOR_LOOP
#undef VECTOR_AT

#if IS_DOUBLE
/* Two numbers at a time; the last one of an odd number counts twice. */
#define FUNCTION_KERNEL(name, R, expression)                                               \
  static __attribute__((noinline)) void S(name##_of_pairs)(T *restrict out, const T *in,   \
                                                           int even) {                     \
    even = even / 2 * 2;                                                                   \
    _Pragma("clang loop vectorize(enable) interleave(disable)")                            \
    for (int i = 0; i < even; i++) {                                                       \
      const T x = in[i];                                                                   \
      out[i] = expression;                                                                 \
    }                                                                                      \
  }                                                                                        \
  static SMALL void S(name)(const Element *element, int64_t start, int64_t n) {            \
    in_pairs(S(name##_of_pairs), OUT(T), IN(1, T), (int)n);                                \
  }
#else
#define FUNCTION_KERNEL(name, R, expression)                                               \
  static SMALL void S(name)(const Element *element, int64_t start, int64_t n) {            \
    (void)start;                                                                           \
    in_doubles(name##_of_pairs_f64, OUT(T), IN(1, T), (int)n);                             \
  }
#endif
VECTOR_UNARY(FUNCTION_KERNEL)
#undef FUNCTION_KERNEL
#endif

#define ENTRY(name, R, expression) [ELEMENTWISE_##name] = {S(name)},
#define SHARED_ENTRY(name, R, expression) [ELEMENTWISE_##name] = {G(name)},
const ElementKernel KERNELS_OF_TYPE[ELEMENTWISE_COUNT] = {
    UNARY(ENTRY) VECTOR_UNARY(ENTRY) BINARY(ENTRY) VECTOR_BINARY(ENTRY)
    SHARED_UNARY(SHARED_ENTRY) SHARED_BINARY(SHARED_ENTRY)
    [ELEMENTWISE_Where] = {WHERE_OF(SIZE)},
};

#undef IS_DOUBLE
#undef SMALL
#undef LANES
#undef OUT
#undef IN
#undef STEP
#undef UNARY_KERNEL
#undef BINARY_KERNEL
#undef ENTRY
#undef SHARED_ENTRY
