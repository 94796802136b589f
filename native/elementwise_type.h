/* Elementwise kernels for one type T, whose arithmetic wraps around in W; included for each type. */

#ifndef TARGET
#define TARGET
#endif
#ifndef IS_FLOAT
#define IS_FLOAT 0
#endif
#ifndef IS_SIGNED
#define IS_SIGNED 0
#endif
#ifndef IS_UNSIGNED
#define IS_UNSIGNED 0
#endif
#ifndef IS_BOOL
#define IS_BOOL 0
#endif

/* X(operator, type of the result, expression of x and y) */
#define EVERY_BINARY(X) X(Equal, uint8_t, x == y)
#define EVERY_UNARY(X)                     \
  X(CastToFloat64, double, (double)x)      \
  X(CastToFloat32, float, (float)x)        \
  X(CastToBool, uint8_t, x != 0)

#define ARITHMETIC(X)                      \
  X(Add, T, (W)x + (W)y)                   \
  X(Sub, T, (W)x - (W)y)                   \
  X(Mul, T, (W)x * (W)y)                   \
  X(AtLeast, T, x < y ? y : x)             \
  X(AtMost, T, y < x ? y : x)

#define COMPARISONS(X)                     \
  X(Less, uint8_t, x < y)                  \
  X(LessOrEqual, uint8_t, x <= y)          \
  X(Greater, uint8_t, x > y)               \
  X(GreaterOrEqual, uint8_t, x >= y)

#define INTEGER_BINARY(X)                  \
  X(Max, T, x < y ? y : x)                 \
  X(Min, T, y < x ? y : x)                 \
  X(BitwiseAnd, T, x & y)                  \
  X(BitwiseOr, T, x | y)                   \
  X(BitwiseXor, T, x ^ y)

#define INTEGER_UNARY(X)                   \
  X(BitwiseNot, T, ~x)                     \
  X(CastToInt64, int64_t, x)               \
  X(CastToInt32, int32_t, x)               \
  X(CastToUint8, uint8_t, x)               \
  X(CastToUint32, uint32_t, x)             \
  X(CastToUint64, uint64_t, x)

#define DIVIDES_BY_ZERO (*(int64_t *)element->extra = 1)

#if IS_FLOAT
#define VECTOR_BINARY(X)                                      \
  ARITHMETIC(X)                                               \
  X(Div, T, x / y)                                            \
  X(Max, T, x != x ? x : x < y || y != y ? y : x)             \
  X(Min, T, x != x ? x : y < x || y != y ? y : x)
#define BINARY(X)                                             \
  EVERY_BINARY(X) COMPARISONS(X)                              \
  X(Fmod, T, F(fmod)(x, y))                                   \
  X(Pow, T, y == 2 ? x * x : y == 3 ? x * x * x : F(pow)(x, y))
#define VECTOR_UNARY(X)                                       \
  X(Exp, T, exp_of(x))                                        \
  X(Log, T, log_of(x))                                        \
  X(Tanh, T, tanh_of(x))                                      \
  X(SigmoidFunction, T, sigmoid_of(x))                        \
  X(SoftplusFunction, T, softplus_of(x))                      \
  X(Log1pFunction, T, log1p_of(x))                            \
  X(Expm1Function, T, expm1_of(x))
#define UNARY(X)                                              \
  EVERY_UNARY(X)                                              \
  X(Neg, T, -x)                                               \
  X(Abs, T, F(fabs)(x))                                       \
  X(Sign, T, x != x ? x : (x > 0) - (x < 0))                  \
  X(Reciprocal, T, 1 / x)                                     \
  X(Relu, T, x < 0 ? 0 : x)                                   \
  X(Sqrt, T, F(sqrt)(x))                                      \
  X(Sin, T, F(sin)(x))                                        \
  X(Cos, T, F(cos)(x))                                        \
  X(Tan, T, F(tan)(x))                                        \
  X(Asin, T, F(asin)(x))                                      \
  X(Acos, T, F(acos)(x))                                      \
  X(Atan, T, F(atan)(x))                                      \
  X(Sinh, T, F(sinh)(x))                                      \
  X(Cosh, T, F(cosh)(x))                                      \
  X(Floor, T, F(floor)(x))                                    \
  X(Ceil, T, F(ceil)(x))                                      \
  X(Round, T, F(nearbyint)(x))                                \
  X(IsNaN, uint8_t, x != x)                                   \
  X(IsInf, uint8_t, x == (T)INFINITY || x == -(T)INFINITY)    \
  X(IsPositiveInf, uint8_t, x == (T)INFINITY)                 \
  X(IsNegativeInf, uint8_t, x == -(T)INFINITY)                \
  X(CastToInt64, int64_t, to_int64(x))                        \
  X(CastToInt32, int32_t, to_int32(x))                        \
  X(CastToUint8, uint8_t, to_int32(x))                        \
  X(CastToUint64, uint64_t, to_uint64(x))

#elif IS_SIGNED
static inline T S(remainder)(T x, T y) {
  T rest = y == -1 ? 0 : x % y;
  return rest && (rest < 0) != (y < 0) ? rest + y : rest;
}
#define BINARY(X)                                                                         \
  EVERY_BINARY(X) ARITHMETIC(X) COMPARISONS(X) INTEGER_BINARY(X)                                      \
  X(Div, T, y == 0 ? (T)DIVIDES_BY_ZERO : y == -1 ? (T)(0 - (W)x) : x / y)                \
  X(Mod, T, y == 0 ? (T)DIVIDES_BY_ZERO : S(remainder)(x, y))
#define UNARY(X)                        \
  EVERY_UNARY(X) INTEGER_UNARY(X)       \
  X(Neg, T, 0 - (W)x)                   \
  X(Abs, T, x < 0 ? 0 - (W)x : (W)x)    \
  X(Sign, T, (x > 0) - (x < 0))

#elif IS_UNSIGNED
#define BINARY(X)                                                     \
  EVERY_BINARY(X) ARITHMETIC(X) COMPARISONS(X) INTEGER_BINARY(X)                  \
  X(Div, T, y == 0 ? (T)DIVIDES_BY_ZERO : (T)(x / y))                 \
  X(Mod, T, y == 0 ? (T)DIVIDES_BY_ZERO : (T)(x % y))                 \
  X(ShiftLeft, T, y >= sizeof(T) * 8 ? 0 : (W)x << y)                 \
  X(ShiftRight, T, y >= sizeof(T) * 8 ? 0 : (W)x >> y)
#define UNARY(X)                        \
  EVERY_UNARY(X) INTEGER_UNARY(X)       \
  X(Abs, T, x)                          \
  X(Sign, T, x > 0)

#else
#define BINARY(X)                       \
  EVERY_BINARY(X)                       \
  X(And, uint8_t, x & y)                \
  X(Or, uint8_t, x | y)                 \
  X(Xor, uint8_t, x ^ y)
#define UNARY(X)                        \
  EVERY_UNARY(X)                        \
  X(Not, uint8_t, !x)                   \
  X(CastToInt64, int64_t, x)            \
  X(CastToInt32, int32_t, x)            \
  X(CastToUint8, uint8_t, x)            \
  X(CastToUint32, uint32_t, x)          \
  X(CastToUint64, uint64_t, x)
#endif

#ifndef VECTOR_BINARY
#define VECTOR_BINARY(X)
#define VECTOR_UNARY(X)
#endif

/* The module of WebAssembly has the smallest code but for arithmetic of floats. */
#ifdef __wasm__
#define COMPACT __attribute__((minsize))
#else
#define COMPACT
#endif
#if defined(__wasm__) && IS_FLOAT
#define LOOP _Pragma("clang loop vectorize(enable) interleave(disable)") for (int64_t i = 0; i < n; i++)
#else
#define LOOP for (int64_t i = 0; i < n; i++)
#endif

#define OUT(R) R *restrict out = (R *)(element->at[0] + start * element->step[0])
#define IN(i) (const T *)(element->at[i] + start * element->step[i])

#define ONE(i) (*(const T *)element->at[i])

#define SMALL_UNARY_KERNEL(name, R, expression) COMPACT UNARY_KERNEL(name, R, expression)
#define UNARY_KERNEL(name, R, expression)                                              \
  static TARGET void S(name)(const Element *element, int64_t start, int64_t n) {       \
    OUT(R);                                                                            \
    const T *in = IN(1);                                                               \
    LOOP {                                                                             \
      const T x = in[i];                                                               \
      out[i] = (R)(expression);                                                        \
    }                                                                                  \
  }
/* Pages load all kernels of the module of WebAssembly: but for arithmetic of floats, one loop serves
 * arrays and numbers. */
#ifdef __wasm__
#define SMALL_KERNEL(name, R, expression)                                             \
  static COMPACT __attribute__((noinline)) void S(name##_by_steps)(\
      const Element *element, int64_t start, int64_t n, int left, int right) {\
    OUT(R);                                                                            \
    const T *a = IN(1), *b = IN(2);                                                    \
    for (int64_t i = 0; i < n; i++, a += left, b += right) {                           \
      const T x = *a, y = *b;                                                          \
      out[i] = (R)(expression);                                                        \
    }                                                                                  \
  }                                                                                    \
  static void S(name)(const Element *element, int64_t start, int64_t n) {              \
    S(name##_by_steps)(element, start, n, 1, 1);                                       \
  }                                                                                    \
  static void S(name##_left_number)(const Element *element, int64_t start, int64_t n) {\
    S(name##_by_steps)(element, start, n, 0, 1);                                       \
  }                                                                                    \
  static void S(name##_right_number)(const Element *element, int64_t start, int64_t n) {\
    S(name##_by_steps)(element, start, n, 1, 0);                                       \
  }
#else
#define SMALL_KERNEL BINARY_KERNEL
#endif
#define BINARY_KERNEL(name, R, expression)                                             \
  static TARGET void S(name)(const Element *element, int64_t start, int64_t n) {       \
    OUT(R);                                                                            \
    const T *a = IN(1), *b = IN(2);                                                    \
    LOOP {                                                                             \
      const T x = a[i], y = b[i];                                                      \
      out[i] = (R)(expression);                                                        \
    }                                                                                  \
  }                                                                                    \
  static TARGET void S(name##_left_number)(const Element *element, int64_t start, int64_t n) {\
    OUT(R);                                                                            \
    const T *b = IN(2);                                                                \
    const T x = *(IN(1));                                                              \
    LOOP {                                                                             \
      const T y = b[i];                                                                \
      out[i] = (R)(expression);                                                        \
    }                                                                                  \
  }                                                                                    \
  static TARGET void S(name##_right_number)(const Element *element, int64_t start, int64_t n) {\
    OUT(R);                                                                            \
    const T *a = IN(1);                                                                \
    const T y = *(IN(2));                                                              \
    LOOP {                                                                             \
      const T x = a[i];                                                                \
      out[i] = (R)(expression);                                                        \
    }                                                                                  \
  }

/* In WebAssembly an element is an array. */
#ifdef __wasm__
#define ONE_UNARY(name, R, expression)
#define ONE_BINARY(name, R, expression)
#define ONE_OF(name) S(name)
#else
#define ONE_OF(name) S(name##_one)
#define ONE_UNARY(name, R, expression)                                                 \
  static TARGET void S(name##_one)(const Element *element, int64_t start, int64_t n) { \
    const T x = ONE(1);                                                                \
    (void)start, (void)n;                                                              \
    *(R *)element->at[0] = (R)(expression);                                            \
  }
#define ONE_BINARY(name, R, expression)                                                \
  static TARGET void S(name##_one)(const Element *element, int64_t start, int64_t n) { \
    const T x = ONE(1), y = ONE(2);                                                    \
    (void)start, (void)n;                                                              \
    *(R *)element->at[0] = (R)(expression);                                            \
  }
#endif
UNARY(SMALL_UNARY_KERNEL)
UNARY(ONE_UNARY)
VECTOR_UNARY(UNARY_KERNEL)
VECTOR_UNARY(ONE_UNARY)
BINARY(SMALL_KERNEL)
BINARY(ONE_BINARY)
VECTOR_BINARY(BINARY_KERNEL)
VECTOR_BINARY(ONE_BINARY)

#define WHERE_LOOP(condition, left, right) \
  for (int64_t i = 0; i < n; i++) out[i] = (condition) ? (left) : (right); \
  break;

#define WHERE_COPY(x) \
  for (int64_t i = 0; i < n; i++) out[i] = (x);

/* `extra` has a bit for each operand that is a number. */
static TARGET void S(Where)(const Element *element, int64_t start, int64_t n) {
  OUT(T);
  const uint8_t *c = (const uint8_t *)element->at[1] + start * element->step[1];
  const T *a = IN(2), *b = IN(3);
  switch ((intptr_t)element->extra & 7) {
    case 0: WHERE_LOOP(c[i], a[i], b[i])
    case 1: if (*c) WHERE_COPY(a[i]) else WHERE_COPY(b[i]) break;
    case 2: WHERE_LOOP(c[i], *a, b[i])
    case 3: if (*c) WHERE_COPY(*a) else WHERE_COPY(b[i]) break;
    case 4: WHERE_LOOP(c[i], a[i], *b)
    case 5: if (*c) WHERE_COPY(a[i]) else WHERE_COPY(*b) break;
    default: WHERE_LOOP(c[i], *a, *b)
  }
}

static TARGET void S(Where_one)(const Element *element, int64_t start, int64_t n) {
  (void)start, (void)n;
  *(T *)element->at[0] = *(const uint8_t *)element->at[1] ? ONE(2) : ONE(3);
}

#define UNARY_ENTRY(name, R, expression) [ELEMENTWISE_##name] = {S(name), S(name), S(name), ONE_OF(name)},
#define BINARY_ENTRY(name, R, expression) \
  [ELEMENTWISE_##name] = {S(name), S(name##_left_number), S(name##_right_number), ONE_OF(name)},
const ElementKernel KERNELS_OF_TYPE[ELEMENTWISE_COUNT] = {
    UNARY(UNARY_ENTRY) VECTOR_UNARY(UNARY_ENTRY) BINARY(BINARY_ENTRY) VECTOR_BINARY(BINARY_ENTRY)
    [ELEMENTWISE_Where] = {S(Where), S(Where), S(Where), S(Where_one)},
};

#undef T
#undef TARGET
#undef W
#undef S
#undef F
#undef KERNELS_OF_TYPE
#undef IS_FLOAT
#undef IS_SIGNED
#undef IS_UNSIGNED
#undef IS_BOOL
#undef EVERY_BINARY
#undef EVERY_UNARY
#undef ARITHMETIC
#undef COMPARISONS
#undef INTEGER_BINARY
#undef INTEGER_UNARY
#undef DIVIDES_BY_ZERO
#undef BINARY
#undef VECTOR_BINARY
#undef VECTOR_UNARY
#undef UNARY
#undef OUT
#undef ONE
#undef IN
#undef UNARY_KERNEL
#undef SMALL_UNARY_KERNEL
#undef BINARY_KERNEL
#undef SMALL_KERNEL
#undef LOOP
#undef COMPACT
#undef ONE_UNARY
#undef ONE_BINARY
#undef ONE_OF
#undef WHERE_LOOP
#undef WHERE_COPY
#undef UNARY_ENTRY
#undef BINARY_ENTRY
