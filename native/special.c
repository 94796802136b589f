/* Kernels of special functions of each element. */
#include "kernel.h"
#include "vector_powers.h"

#ifdef __wasm__
#define ELEMENTARY static __attribute__((noinline)) /* the module is small before it is fast */
#else
#define ELEMENTARY INLINE
#endif
ELEMENTARY double exponential(double x) { return exp_of(x); }
ELEMENTARY double logarithm(double x) { return log_of(x); }
INLINE float exponentialf(float x) { return (float)exponential(x); }
INLINE float logarithmf(float x) { return (float)logarithm(x); }

/* Largest and smallest numbers; NaN if one of them is. */
static inline double maximum(double x, double y) { return x > y || isnan(x) ? x : y; }
static inline float maximumf(float x, float y) { return x > y || isnan(x) ? x : y; }
static inline double minimum(double x, double y) { return x < y || isnan(x) ? x : y; }
static inline float minimumf(float x, float y) { return x < y || isnan(x) ? x : y; }

static inline double square(double x) { return x * x; }
static inline float squaref(float x) { return x * x; }
static inline double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
static inline float signf(float x) { return x > 0 ? 1 : x < 0 ? -1 : x; }

/* The integer of a number, zero for NaN and numbers beyond all tables. */
static inline int64_t to_integer(double x) { return fabs(x) < 1e18 ? (int64_t)x : 0; }

/* 2**(k - 1) of a whole number, and any number of NaN. */
static inline double half_power_of_two(double k) { return scaled(1, bounded(k - 1, -1100, 1024)); }
static inline float half_power_of_twof(float k) { return (float)half_power_of_two(k); }

#include "special_functions.inc"

/* Numbers of a pass of functions of which vectors compute one side. */
enum { PASS = 256 };

#define EACH(target, function, name, real)                              \
  static target void name(int64_t n, const real *x, real *restrict y) { \
    for (int64_t i = 0; i < n; i++) y[i] = (real)function(x[i]);        \
  }
#define EACH_float64(target, function, name) EACH(target, function##_float64, name, double)
#define EACH_float32(target, function, name) EACH(target, function##_float32, name, float)
#define SPLIT(target, function, name, real)                              \
  static target void name(int64_t n, const real *x, real *restrict y) {  \
    for (int64_t count; n; n -= count, x += count, y += count) {         \
      int any = 0;                                                       \
      count = n < PASS ? n : PASS;                                       \
      for (int64_t i = 0; i < count; i++) {                              \
        y[i] = (real)function##_float64_near(x[i]);                      \
        any |= x[i] < 0;                                                 \
      }                                                                  \
      for (int64_t i = 0; any && i < count; i++) {                       \
        if (x[i] < 0) y[i] = (real)function##_float64(x[i]);             \
      }                                                                  \
    }                                                                    \
  }
#define SPLIT_float64(target, function, name) SPLIT(target, function, name, double)
#define SPLIT_float32(target, function, name) SPLIT(target, function, name, float)
#ifdef WIDE
#define WIDTHS(kind, function, name) kind(, function, name) kind(WIDE, function, name##_wide)
#else
#define WIDTHS(kind, function, name) kind(, function, name)
#endif

#define LOOP_DOUBLE(name, kind) WIDTHS(kind##_float64, name, loop_##name##_float64)
#define LOOPS(name, kind) LOOP_DOUBLE(name, kind) WIDTHS(kind##_float32, name, loop_##name##_float32)
ALL_KERNELS(LOOPS, LOOP_DOUBLE)

/* Functions of the library's own, and those that are slower in float32 than its operators. */
#define OWN_KERNELS(BOTH, DOUBLE) \
  BOTH(Exp2, exp2_of)             \
  BOTH(Expm1, expm1_of)           \
  BOTH(Log2, log2_of)             \
  BOTH(Log10, log10_of)           \
  BOTH(Log1p, log1p_of)           \
  BOTH(Log1mexp, log1mexp_of)     \
  BOTH(ArcSinh, asinh_of)         \
  BOTH(ArcCosh, acosh_of)         \
  BOTH(ArcTanh, atanh_of)         \
  DOUBLE(Sigmoid, sigmoid_of)     \
  BOTH(Softplus, softplus_of)
#define OWN_float64(target, function, name) EACH(target, function, name, double)
#define OWN_float32(target, function, name) EACH(target, function, name, float)
#define OWN_DOUBLE(name, function) WIDTHS(OWN_float64, function, loop_##name##_float64)
#define OWN_LOOPS(name, function) \
  OWN_DOUBLE(name, function) WIDTHS(OWN_float32, function, loop_##name##_float32)
OWN_KERNELS(OWN_LOOPS, OWN_DOUBLE)

static const char *infer(const Kernel *kernel, const Array *in, Array *out, size_t *scratch) {
  (void)kernel, (void)scratch;
  out[0] = in[0];
  return NULL;
}

static const char *run(const Kernel *kernel, const Array *in, Array *out, void *scratch) {
  (void)scratch;
  Function function = function_for(kernel, in[0].dtype);
  if (in[0].dtype == FLOAT64) {
    ((void (*)(int64_t, const double *, double *))function)(in[0].size, in[0].data, out[0].data);
  } else {
    ((void (*)(int64_t, const float *, float *))function)(in[0].size, in[0].data, out[0].data);
  }
  return NULL;
}

#define KERNEL(name, functions) \
  {#name, 1, 1, 0, BATCHED | IN_BLOCKS, 0, infer, run, functions},
#define KERNEL_OF_BOTH(name, how) KERNEL(name, WITH_WIDE(loop_##name))
#define KERNEL_OF_DOUBLE(name, how) KERNEL(name, DOUBLE_WITH_WIDE(loop_##name))
const Kernel SPECIAL_KERNELS[] = {
    ALL_KERNELS(KERNEL_OF_BOTH, KERNEL_OF_DOUBLE) OWN_KERNELS(KERNEL_OF_BOTH, KERNEL_OF_DOUBLE){NULL},
};
