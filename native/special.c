/* Kernels of special functions of each element. */
#include "kernel.h"
#include "vector_math.h"

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
static inline double half_power_of_two(double k) {
  if (!(k <= 1024)) return k > 1024 ? INFINITY : k;
  if (k < -1021) return k < -1100 ? 0 : half_power_of_two(k + 100) * 0x1p-100;
  uint64_t bits = (uint64_t)((int64_t)k + 1022) << 52;
  double power;
  memcpy(&power, &bits, sizeof power);
  return power;
}
static inline float half_power_of_twof(float k) { return (float)half_power_of_two(k); }

#include "special_functions.inc"

#ifdef WIDE
#define WIDE_LOOP(function, name, real) LOOP(WIDE, function, name##_wide, real)
#else
#define WIDE_LOOP(function, name, real)
#endif
#define LOOP(target, function, name, real)                              \
  static target void name(int64_t n, const real *x, real *restrict y) { \
    for (int64_t i = 0; i < n; i++) y[i] = function(x[i]);              \
  }

#define LOOP_DOUBLE(name)                               \
  LOOP(, name##_float64, loop_##name##_float64, double) \
  WIDE_LOOP(name##_float64, loop_##name##_float64, double)
#define LOOPS(name)                                    \
  LOOP_DOUBLE(name)                                    \
  LOOP(, name##_float32, loop_##name##_float32, float) \
  WIDE_LOOP(name##_float32, loop_##name##_float32, float)
ALL_KERNELS(LOOPS, LOOP_DOUBLE)

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
#define KERNEL_OF_BOTH(name) KERNEL(name, WITH_WIDE(loop_##name))
#define KERNEL_OF_DOUBLE(name) KERNEL(name, DOUBLE_WITH_WIDE(loop_##name))
const Kernel SPECIAL_KERNELS[] = {ALL_KERNELS(KERNEL_OF_BOTH, KERNEL_OF_DOUBLE){NULL}};
