/* The kernels of elementwise operators, made from one text for each type. */
#include "elementwise.h"

#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "vector_math.h"

/* Numbers out of the range of a type become what the processor makes of them. */
static inline int64_t to_int64(double x) {
#if defined(__x86_64__)
  return _mm_cvttsd_si64(_mm_set_sd(x));
#else
  return x >= 9223372036854775808.0 ? INT64_MAX : x >= -9223372036854775808.0 ? (int64_t)x
         : x != x                   ? 0
                                    : INT64_MIN;
#endif
}

static inline int32_t to_int32(double x) {
#if defined(__x86_64__)
  return _mm_cvttsd_si32(_mm_set_sd(x));
#else
  return x >= 2147483648.0 ? INT32_MAX : x > -2147483649.0 ? (int32_t)x : x != x ? 0 : INT32_MIN;
#endif
}

static inline uint64_t to_uint64(double x) {
  const double half = 9223372036854775808.0;
  return x >= half ? (uint64_t)to_int64(x - half) ^ ((uint64_t)1 << 63) : (uint64_t)to_int64(x);
}

#define T double
#define W double
#define S(name) name##_f64
#define F(name) name
#define KERNELS_OF_TYPE KERNELS_F64
#define IS_FLOAT 1
#include "elementwise_type.h"

#define T float
#define W float
#define S(name) name##_f32
#define F(name) name##f
#define KERNELS_OF_TYPE KERNELS_F32
#define IS_FLOAT 1
#include "elementwise_type.h"

#ifdef WIDE
#define TARGET WIDE
#define T double
#define W double
#define S(name) name##_f64_wide
#define F(name) name
#define KERNELS_OF_TYPE KERNELS_F64_WIDE
#define IS_FLOAT 1
#include "elementwise_type.h"

#define TARGET WIDE
#define T float
#define W float
#define S(name) name##_f32_wide
#define F(name) name##f
#define KERNELS_OF_TYPE KERNELS_F32_WIDE
#define IS_FLOAT 1
#include "elementwise_type.h"
#endif

#define T int64_t
#define W uint64_t
#define S(name) name##_i64
#define KERNELS_OF_TYPE KERNELS_I64
#define IS_SIGNED 1
#include "elementwise_type.h"

#define T int32_t
#define W uint32_t
#define S(name) name##_i32
#define KERNELS_OF_TYPE KERNELS_I32
#define IS_SIGNED 1
#include "elementwise_type.h"

#define T uint64_t
#define W uint64_t
#define S(name) name##_u64
#define KERNELS_OF_TYPE KERNELS_U64
#define IS_UNSIGNED 1
#include "elementwise_type.h"

#define T uint32_t
#define W uint32_t
#define S(name) name##_u32
#define KERNELS_OF_TYPE KERNELS_U32
#define IS_UNSIGNED 1
#include "elementwise_type.h"

#define T uint8_t
#define W uint32_t
#define S(name) name##_u8
#define KERNELS_OF_TYPE KERNELS_U8
#define IS_UNSIGNED 1
#include "elementwise_type.h"

#define T uint8_t
#define W uint32_t
#define S(name) name##_bool
#define KERNELS_OF_TYPE KERNELS_BOOL
#define IS_BOOL 1
#include "elementwise_type.h"

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
