/* Elementwise kernels for one type T, whose arithmetic wraps around in W; included for each type.
 *
 * Types of one size share kernels that are the same for both: G is the name of such a kernel, and
 * IS_SECOND is set where another type makes it. */

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
#ifndef G
#define G S
#endif

/* X(operator, type of the result, expression of x and y) */
#define CASTS_TO_FLOATS(X)                 \
  X(CastToFloat64, double, (double)x)      \
  X(CastToFloat32, float, (float)x)

#define CASTS_TO_WIDE(X)                   \
  X(CastToInt64, int64_t, x)               \
  X(CastToUint64, uint64_t, x)

#define CASTS_TO_NARROW(X)                 \
  X(CastToInt32, int32_t, x)               \
  X(CastToUint8, uint8_t, x)               \
  X(CastToUint32, uint32_t, x)             \
  X(CastToBool, uint8_t, x != 0)

#define ORDER(X)                           \
  X(Less, uint8_t, x < y)                  \
  X(LessOrEqual, uint8_t, x <= y)          \
  X(Greater, uint8_t, x > y)               \
  X(GreaterOrEqual, uint8_t, x >= y)

#define INTEGER_ORDER(X)                   \
  ORDER(X)                                 \
  X(AtLeast, T, x < y ? y : x)             \
  X(AtMost, T, y < x ? y : x)              \
  X(Max, T, x < y ? y : x)                 \
  X(Min, T, y < x ? y : x)

#define SIGNLESS(X)                        \
  X(Equal, uint8_t, x == y)                \
  X(Add, T, (W)x + (W)y)                   \
  X(Sub, T, (W)x - (W)y)                   \
  X(Mul, T, (W)x * (W)y)                   \
  X(BitwiseAnd, T, x & y)                  \
  X(BitwiseOr, T, x | y)                   \
  X(BitwiseXor, T, x ^ y)

#define DIVIDES_BY_ZERO (*(int64_t *)element->extra = 1)

#if IS_FLOAT
#define VECTOR_BINARY(X)                                      \
  X(Add, T, x + y)                                            \
  X(Sub, T, x - y)                                            \
  X(Mul, T, x * y)                                            \
  X(Div, T, x / y)                                            \
  X(AtLeast, T, x < y ? y : x)                                \
  X(AtMost, T, y < x ? y : x)                                 \
  X(Max, T, x != x ? x : ((x < y) | (y != y)) ? y : x)        \
  X(Min, T, x != x ? x : ((y < x) | (y != y)) ? y : x)
#define BINARY(X)                                             \
  ORDER(X)                                                    \
  X(Equal, uint8_t, x == y) RARE_BINARY(X)                    \
  X(Pow, T, y == 2 ? x * x : y == 3 ? x * x * x : F(pow)(x, y))
#ifndef IS_CORE
#define RARE_BINARY(X) X(Fmod, T, F(fmod)(x, y))
#define RARE_UNARY(X)                                         \
  X(Sin, T, F(sin)(x))                                        \
  X(Cos, T, F(cos)(x))                                        \
  X(Tan, T, F(tan)(x))                                        \
  X(Asin, T, F(asin)(x))                                      \
  X(Acos, T, F(acos)(x))                                      \
  X(Atan, T, F(atan)(x))                                      \
  X(Sinh, T, F(sinh)(x))                                      \
  X(Cosh, T, F(cosh)(x))
#else
#define RARE_BINARY(X)
#define RARE_UNARY(X)
#endif
#define VECTOR_UNARY(X)                                       \
  X(Exp, T, exp_of(x))                                        \
  X(Log, T, log_of(x))                                        \
  X(Tanh, T, tanh_of(x))                                      \
  X(SigmoidFunction, T, sigmoid_of(x))                        \
  X(SoftplusFunction, T, softplus_of(x))                      \
  X(Log1pFunction, T, log1p_of(x))                            \
  X(Expm1Function, T, expm1_of(x))
#define UNARY(X)                                              \
  CASTS_TO_FLOATS(X) RARE_UNARY(X)                            \
  X(CastToBool, uint8_t, x != 0)                              \
  X(Neg, T, -x)                                               \
  X(Abs, T, F(fabs)(x))                                       \
  X(Sign, T, x != x ? x : (x > 0) - (x < 0))                  \
  X(Reciprocal, T, 1 / x)                                     \
  X(Relu, T, x < 0 ? 0 : x)                                   \
  X(Sqrt, T, F(sqrt)(x))                                      \
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
#define SHARED_BINARY(X)
#define SHARED_UNARY(X)

#elif IS_SIGNED
static inline T S(remainder)(T x, T y) {
  T rest = y == -1 ? 0 : x % y;
  return rest && (rest < 0) != (y < 0) ? rest + y : rest;
}
#define SHARED_BINARY(X) SIGNLESS(X)
#define SHARED_UNARY(X) CASTS_TO_NARROW(X) X(BitwiseNot, T, ~x)
#define BINARY(X)                                                                         \
  INTEGER_ORDER(X)                                                                        \
  X(Div, T, y == 0 ? (T)DIVIDES_BY_ZERO : y == -1 ? (T)(0 - (W)x) : x / y)                \
  X(Mod, T, y == 0 ? (T)DIVIDES_BY_ZERO : S(remainder)(x, y))
#define UNARY(X)                        \
  CASTS_TO_FLOATS(X) CASTS_TO_WIDE(X)   \
  X(Neg, T, 0 - (W)x)                   \
  X(Abs, T, x < 0 ? 0 - (W)x : (W)x)    \
  X(Sign, T, (x > 0) - (x < 0))

#elif IS_UNSIGNED
#define SHARED_BINARY(X) SIGNLESS(X)
#define SHARED_UNARY(X) CASTS_TO_NARROW(X) X(BitwiseNot, T, ~x)
#define BINARY(X)                                                     \
  INTEGER_ORDER(X)                                                    \
  X(Div, T, y == 0 ? (T)DIVIDES_BY_ZERO : (T)(x / y))                 \
  X(Mod, T, y == 0 ? (T)DIVIDES_BY_ZERO : (T)(x % y))                 \
  X(ShiftLeft, T, y >= sizeof(T) * 8 ? 0 : (W)x << y)                 \
  X(ShiftRight, T, y >= sizeof(T) * 8 ? 0 : (W)x >> y)
#define UNARY(X)                        \
  CASTS_TO_FLOATS(X) CASTS_TO_WIDE(X)   \
  X(Abs, T, x)                          \
  X(Sign, T, x > 0)

#else
#define SHARED_BINARY(X) X(Equal, uint8_t, x == y)
#define SHARED_UNARY(X) CASTS_TO_FLOATS(X) CASTS_TO_WIDE(X) CASTS_TO_NARROW(X)
#define BINARY(X)                       \
  X(And, uint8_t, x & y)                \
  X(Or, uint8_t, x | y)                 \
  X(Xor, uint8_t, x ^ y)
#define UNARY(X) X(Not, uint8_t, !x)
#endif

#ifndef VECTOR_BINARY
#define VECTOR_BINARY(X)
#define VECTOR_UNARY(X)
#endif

#ifdef __wasm__
#include "elementwise_small.h"
#else
#include "elementwise_loops.h"
#endif

#undef T
#undef TARGET
#undef W
#undef S
#undef G
#undef F
#undef SIZE
#undef KERNELS_OF_TYPE
#undef IS_FLOAT
#undef IS_SIGNED
#undef IS_UNSIGNED
#undef IS_SECOND
#undef CASTS_TO_FLOATS
#undef CASTS_TO_WIDE
#undef CASTS_TO_NARROW
#undef ORDER
#undef INTEGER_ORDER
#undef SIGNLESS
#undef RARE_BINARY
#undef RARE_UNARY
#undef DIVIDES_BY_ZERO
#undef BINARY
#undef VECTOR_BINARY
#undef SHARED_BINARY
#undef UNARY
#undef VECTOR_UNARY
#undef SHARED_UNARY
