/* Loops of elementwise kernels for one type, natively: arrays, and a number on either side. */

#define OUT(R) R *restrict out = (R *)part_at(element, 0, start)
#define IN(i) (const T *)part_at(element, i, start)

#define ONE(i) (*(const T *)element->at[i])

#define UNARY_KERNEL(name, R, expression)                                        \
  static TARGET void S(name)(const Element *element, int64_t start, int64_t n) { \
    OUT(R);                                                                      \
    const T *in = IN(1);                                                         \
    for (int64_t i = 0; i < n; i++) {                                            \
      const T x = in[i];                                                         \
      out[i] = (R)(expression);                                                  \
    }                                                                            \
  }
#define BINARY_KERNEL(name, R, expression)                                                      \
  static TARGET void S(name)(const Element *element, int64_t start, int64_t n) {                \
    OUT(R);                                                                                     \
    const T *a = IN(1), *b = IN(2);                                                             \
    for (int64_t i = 0; i < n; i++) {                                                           \
      const T x = a[i], y = b[i];                                                               \
      out[i] = (R)(expression);                                                                 \
    }                                                                                           \
  }                                                                                             \
  static TARGET void S(name##_left_number)(const Element *element, int64_t start, int64_t n) {  \
    OUT(R);                                                                                     \
    const T *b = IN(2);                                                                         \
    const T x = *(IN(1));                                                                       \
    for (int64_t i = 0; i < n; i++) {                                                           \
      const T y = b[i];                                                                         \
      out[i] = (R)(expression);                                                                 \
    }                                                                                           \
  }                                                                                             \
  static TARGET void S(name##_right_number)(const Element *element, int64_t start, int64_t n) { \
    OUT(R);                                                                                     \
    const T *a = IN(1);                                                                         \
    const T y = *(IN(2));                                                                       \
    for (int64_t i = 0; i < n; i++) {                                                           \
      const T x = a[i];                                                                         \
      out[i] = (R)(expression);                                                                 \
    }                                                                                           \
  }

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
#ifndef IS_SECOND
SHARED_UNARY(UNARY_KERNEL)
SHARED_UNARY(ONE_UNARY)
SHARED_BINARY(BINARY_KERNEL)
SHARED_BINARY(ONE_BINARY)
#endif
UNARY(UNARY_KERNEL)
UNARY(ONE_UNARY)
VECTOR_UNARY(UNARY_KERNEL)
VECTOR_UNARY(ONE_UNARY)
BINARY(BINARY_KERNEL)
BINARY(ONE_BINARY)
VECTOR_BINARY(BINARY_KERNEL)
VECTOR_BINARY(ONE_BINARY)

#define WHERE_LOOP(condition, left, right)                                 \
  for (int64_t i = 0; i < n; i++) out[i] = (condition) ? (left) : (right); \
  break;

#define WHERE_COPY(x) \
  for (int64_t i = 0; i < n; i++) out[i] = (x);

static TARGET void S(Where)(const Element *element, int64_t start, int64_t n) {
  OUT(T);
  const uint8_t *c = (const uint8_t *)part_at(element, 1, start);
  const T *a = IN(2), *b = IN(3);
  switch (element->numbers) {
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

#define UNARY_OF(S, name) [ELEMENTWISE_##name] = {S(name), S(name), S(name), S(name##_one)},
#define BINARY_OF(S, name) \
  [ELEMENTWISE_##name] = {S(name), S(name##_left_number), S(name##_right_number), S(name##_one)},
#define UNARY_ENTRY(name, R, expression) UNARY_OF(S, name)
#define BINARY_ENTRY(name, R, expression) BINARY_OF(S, name)
#define SHARED_UNARY_ENTRY(name, R, expression) UNARY_OF(G, name)
#define SHARED_BINARY_ENTRY(name, R, expression) BINARY_OF(G, name)
const ElementKernel KERNELS_OF_TYPE[ELEMENTWISE_COUNT] = {
    UNARY(UNARY_ENTRY) VECTOR_UNARY(UNARY_ENTRY) BINARY(BINARY_ENTRY) VECTOR_BINARY(BINARY_ENTRY)
    SHARED_UNARY(SHARED_UNARY_ENTRY) SHARED_BINARY(SHARED_BINARY_ENTRY)
    [ELEMENTWISE_Where] = {S(Where), S(Where), S(Where), S(Where_one)},
};

#undef OUT
#undef IN
#undef ONE
#undef UNARY_KERNEL
#undef BINARY_KERNEL
#undef ONE_UNARY
#undef ONE_BINARY
#undef WHERE_LOOP
#undef WHERE_COPY
#undef UNARY_OF
#undef BINARY_OF
#undef UNARY_ENTRY
#undef BINARY_ENTRY
#undef SHARED_UNARY_ENTRY
#undef SHARED_BINARY_ENTRY
