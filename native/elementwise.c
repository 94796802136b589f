/* The kernels of elementwise operators, made from one text for each type. */
#include "elementwise.h"

#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "vector_trigonometry.h"

/* Numbers out of the range of a type become the least one, on all processors as on x86-64. */
static inline int64_t to_int64(double x) {
#if defined(__x86_64__)
  return _mm_cvttsd_si64(_mm_set_sd(x));
#else
  return x >= -9223372036854775808.0 && x < 9223372036854775808.0 ? (int64_t)x : INT64_MIN;
#endif
}

static inline int32_t to_int32(double x) {
#if defined(__x86_64__)
  return _mm_cvttsd_si32(_mm_set_sd(x));
#else
  return x > -2147483649.0 && x < 2147483648.0 ? (int32_t)x : INT32_MIN;
#endif
}

static inline uint64_t to_uint64(double x) {
  const double half = 9223372036854775808.0;
  return x >= half ? (uint64_t)to_int64(x - half) ^ ((uint64_t)1 << 63) : (uint64_t)to_int64(x);
}

#ifdef __wasm__
#define WHERE_OF(size) JOINED(where_, size)
#define JOINED(x, y) x##y
#define ONES 0x0101010101010101u
/* Conditions are often equal for many elements, so eight are looked at together. */
#define WHERE(size)                                                                         \
  typedef uint##size##_t Eight_##size                                                       \
      __attribute__((ext_vector_type(8), aligned(size / 8), may_alias));                    \
  static __attribute__((minsize)) void where_##size(const Element *element, int64_t start,  \
                                                    int64_t n) {                            \
    typedef uint##size##_t T;                                                               \
    T *out = (T *)part_at(element, 0, start);                                               \
    const uint8_t *c = (uint8_t *)part_at(element, 1, start);                               \
    const T *a = (T *)part_at(element, 2, start), *b = (T *)part_at(element, 3, start);     \
    const int asks = ~element->numbers & 1, left = ~element->numbers >> 1 & 1,              \
              right = ~element->numbers >> 2 & 1;                                           \
    for (int rest = (int)n, count; rest; rest -= count) {                                   \
      uint64_t next = *c ? ONES : 0;                                                        \
      count = rest < 8 ? 1 : 8;                                                             \
      if (asks && count == 8) memcpy(&next, c, sizeof next);                                \
      if (next && next != ONES) count = 1, next = *c;                                       \
      const T *from = next ? a : b;                                                         \
      if (count == 1) *out = *from;                                                         \
      else if (next ? left : right) *(Eight_##size *)out = *(const Eight_##size *)from;     \
      else *(Eight_##size *)out = *from;                                                    \
      out += count, c += count * asks, a += count * left, b += count * right;               \
    }                                                                                       \
  }
WHERE(64)
WHERE(32)
WHERE(8)

typedef void (*OfPairs)(double *restrict out, const double *in, int even);

static void in_pairs(OfPairs run, double *out, const double *in, int n) {
  run(out, in, n);
  if (n % 2 == 0) return;
  double last[2] = {in[n - 1], in[n - 1]}, results[2];
  run(results, last, 2);
  out[n - 1] = results[0];
}

/* Run a function of doubles on numbers of single precision, some at a time. */
static void in_doubles(OfPairs run, float *out, const float *in, int n) {
  double given[64], results[64];
  for (int count; n > 0; n -= count, in += count, out += count) {
    count = n < 64 ? n : 64;
    for (int i = 0; i < count; i++) given[i] = in[i];
    if (count < 64) given[count] = given[count - 1];
    run(results, given, (count + 1) / 2 * 2);
    for (int i = 0; i < count; i++) out[i] = (float)results[i];
  }
}
#endif

/* Numbers of a pass of functions in passes. */
enum { PASS = 64 };

#define TARGET
#define D(name) name
#include "elementary.inc"

#define T double
#define S(name) name##_f64
#define D(name) name
#define F(name) name
#define IS_FLOAT 1
#define IS_DOUBLE 1
#define SIZE 64
#define KERNELS_OF_TYPE KERNELS_F64
#include "elementwise.inc"

#ifdef __wasm__
#define F(name) (T)name
#else
#define F(name) name##f
#endif
#define T float
#define S(name) name##_f32
#define D(name) name
#define IS_FLOAT 1
#define SIZE 32
#define KERNELS_OF_TYPE KERNELS_F32
#include "elementwise.inc"

#ifdef WIDE
#define TARGET WIDE
#define D(name) name##_wide
#include "elementary.inc"

#define T double
#define D(name) name##_wide
#define S(name) name##_f64_wide
#define F(name) name
#define IS_FLOAT 1
#define IS_DOUBLE 1
#define KERNELS_OF_TYPE KERNELS_F64_WIDE
#include "elementwise.inc"

#define TARGET WIDE
#define T float
#define D(name) name##_wide
#define S(name) name##_f32_wide
#define F(name) name##f
#define IS_FLOAT 1
#define KERNELS_OF_TYPE KERNELS_F32_WIDE
#include "elementwise.inc"
#endif

#define T int64_t
#define W uint64_t
#define S(name) name##_i64
#define IS_SIGNED 1
#define SIZE 64
#define KERNELS_OF_TYPE KERNELS_I64
#include "elementwise.inc"

#define T int32_t
#define W uint32_t
#define S(name) name##_i32
#define IS_SIGNED 1
#define SIZE 32
#define KERNELS_OF_TYPE KERNELS_I32
#include "elementwise.inc"

#define T uint64_t
#define W uint64_t
#define S(name) name##_u64
#define G(name) name##_i64
#define IS_UNSIGNED 1
#define IS_SECOND
#define SIZE 64
#define KERNELS_OF_TYPE KERNELS_U64
#include "elementwise.inc"

#define T uint32_t
#define W uint32_t
#define S(name) name##_u32
#define G(name) name##_i32
#define IS_UNSIGNED 1
#define IS_SECOND
#define SIZE 32
#define KERNELS_OF_TYPE KERNELS_U32
#include "elementwise.inc"

#define T uint8_t
#define W uint32_t
#define S(name) name##_u8
#define IS_UNSIGNED 1
#define SIZE 8
#define KERNELS_OF_TYPE KERNELS_U8
#include "elementwise.inc"

#define T uint8_t
#define W uint32_t
#define S(name) name##_bool
#define G(name) name##_u8
#define IS_SECOND
#define SIZE 8
#define KERNELS_OF_TYPE KERNELS_BOOL
#include "elementwise.inc"

double function_of(int op, double x) {
  double result;
  KERNELS_F64[op].vectors(&(Element){.at = {(char *)&result, (char *)&x}}, 0, 1);
  return result;
}

const ElementKernel *element_kernel(int op, int dtype) {
#ifdef WIDE
  if (dtype == FLOAT64 && has_wide_vectors()) return &KERNELS_F64_WIDE[op];
  if (dtype == FLOAT32 && has_wide_vectors()) return &KERNELS_F32_WIDE[op];
#endif
  switch (dtype) {
    case FLOAT64: return &KERNELS_F64[op];
    case FLOAT32: return &KERNELS_F32[op];
    case INT64: return &KERNELS_I64[op];
    case INT32: return &KERNELS_I32[op];
    case UINT64: return &KERNELS_U64[op];
    case UINT32: return &KERNELS_U32[op];
    case UINT8: return &KERNELS_U8[op];
    case BOOL: return &KERNELS_BOOL[op];
    default: return NULL;
  }
}
