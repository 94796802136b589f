/* Kernels of the words and numbers of ciphers: `pytensor_onnx.functions.random.ciphers`. */
#include "ciphers.h"

#include "kernel.h"
#include "vector_math.h"

enum { NUMBERS = 256 };

/* Bits of a float of each block of Threefry-2x32 from a counter on, whose upper word is one. */
CIPHER void bits_32(const int64_t *key, uint64_t from, int64_t count, uint32_t *restrict bits) {
  uint32_t a = (uint32_t)key[0], b = (uint32_t)key[1], upper = (uint32_t)(from >> 32);
  uint32_t start = (uint32_t)from;
  for (int64_t i = 0; i < count; i++) {
    uint32_t x = upper, y = start + (uint32_t)i;
    threefry_2x32(a, b, &x, &y);
    bits[i] = (x ^ y) >> 9;
  }
}

CIPHER void words_32(const int64_t *key, uint64_t from, int64_t count, uint32_t *restrict first,
                     uint32_t *restrict second) {
  uint32_t a = (uint32_t)key[0], b = (uint32_t)key[1], upper = (uint32_t)(from >> 32);
  uint32_t start = (uint32_t)from;
  for (int64_t i = 0; i < count; i++) {
    uint32_t x = upper, y = start + (uint32_t)i;
    threefry_2x32(a, b, &x, &y);
    first[i] = x, second[i] = y;
  }
}

CIPHER void uniforms_float32(const int64_t *key, uint64_t from, int64_t count, float *restrict y) {
  uint32_t bits[NUMBERS];
  bits_32(key, from, count, bits);
  for (int64_t i = 0; i < count; i++) y[i] = (float)(int32_t)bits[i] * 0x1p-23f;
}

CIPHER void uniforms_float64(const int64_t *key, uint64_t from, int64_t count, double *restrict y) {
  uint32_t first[NUMBERS], second[NUMBERS];
  words_32(key, from, count, first, second);
  for (int64_t i = 0; i < count; i++) {
    uint64_t fraction = (uint64_t)first[i] << 20 | second[i] >> 12;
    y[i] = from_bits(fraction | 0x3ff0000000000000) - 1;
  }
}

/* -log(1 - x^2). */
CIPHER double minus_log_of(double x) { return -log_of_normal((1 - x) * (1 + x)); }

#define HORNER(w, table) horner(w, table, sizeof table / sizeof *table)
CIPHER double horner(double w, const double *table, int count) {
  double sum = table[count - 1];
#pragma GCC unroll 16
  for (int i = count - 2; i >= 0; i--) sum = sum * w + table[i];
  return sum;
}

static const double RATIO_TOP[] = {
    1.2533141414317333,    0.3847939213170953,     0.06987062801464443,     0.00855206452675686,
    0.0006458728312154761, 2.0926807736097927e-05, -1.1915573825085316e-08, 4.479634727157929e-08,
};
static const double RATIO_BOTTOM[] = {
    1.0,                   0.04522183350985884,     0.030877183851188227,   0.0007862412096085551,
    0.0001700517695127503, -2.4296975061047685e-06, 1.9347097480621404e-07, 1.6068000244122541e-09,
};
static const double REST_TOP[] = {
    0.0033141373155002457,   -0.03920708692762619,   0.008489835926866045,   0.002384608062227826,
    0.00040921646667114883,  7.470579363532204e-05,  6.522658594777484e-06,  -2.8033516636867307e-07,
    8.642703952009686e-08,   -1.2387347460806391e-08, 6.625119309199152e-10, -6.894893721856524e-11,
    2.4662020837806205e-12,  -1.177850261380748e-13, 2.5893388479620632e-15, 1.115866449290811e-17,
};
static const double REST_BOTTOM[] = {
    1.0,                    0.43028971566333873,   0.12729287565561628,    0.02865295921018188,
    0.0049294365976127194,  0.0006722770955349187, 7.910216262033502e-05,  6.821878983439319e-06,
    5.64460514723965e-07,   3.208793675969015e-08, 1.8887254185325276e-09, 6.652324175527881e-11,
    2.6729228383156396e-12, 5.766358762155571e-14, 2.835172227497423e-16,  1.4379118917993522e-19,
};

/* Quantile of the normal distribution for the probability (1 + x) / 2, of float32 and float64. */
CIPHER double short_quantile(double x, double w) {
  return x * (HORNER(w, RATIO_TOP) / HORNER(w, RATIO_BOTTOM));
}

CIPHER double upper_half(double x) {
  double all = x * 134217729.0;
  return all - (all - x);
}

CIPHER double quantile(double x, double w) {
  double scaled = w * 0.0625;
  double top = w + 3.125, added = top - w, top_rest = (w - (top - added)) + (3.125 - added);
  double bottom = scaled + 2.5, more = bottom - scaled;
  double bottom_rest = (scaled - (bottom - more)) + (2.5 - more);
  double ratio = top / bottom, first = upper_half(ratio), head = upper_half(bottom);
  double last = ratio - first, tail = bottom - head;
  double left = ((top - first * head) - last * head - first * tail) - last * tail;
  double rest = (left + top_rest - ratio * bottom_rest) / bottom;
  return x * (ratio + (rest + HORNER(w, REST_TOP) / HORNER(w, REST_BOTTOM)));
}

CIPHER void normals_float32(const int64_t *key, uint64_t from, int64_t count, float *restrict y) {
  const float least = -0x1.fffffep-1f;
  double x[NUMBERS], w[NUMBERS];
  uniforms_float32(key, from, count, y);
  for (int64_t i = 0; i < count; i++) {
    float moved = y[i] * 2 + least;
    x[i] = moved > least ? moved : least;
  }
  for (int64_t i = 0; i < count; i++) w[i] = minus_log_of(x[i]);
  for (int64_t i = 0; i < count; i++) w[i] = short_quantile(x[i], w[i]);
  for (int64_t i = 0; i < count; i++) y[i] = (float)w[i];
}

CIPHER void normals_float64(const int64_t *key, uint64_t from, int64_t count, double *restrict y) {
  const double least = -0x1.fffffffffffffp-1;
  double x[NUMBERS], w[NUMBERS];
  uniforms_float64(key, from, count, y);
  for (int64_t i = 0; i < count; i++) {
    double moved = y[i] * 2 + least;
    x[i] = moved > least ? moved : least;
  }
  for (int64_t i = 0; i < count; i++) w[i] = minus_log_of(x[i]);
  for (int64_t i = 0; i < count; i++) y[i] = quantile(x[i], w[i]);
}

/* Blocks of 256 numbers, none of which has two upper words of its counters. */
#define DRAW(target, kind, real, name)                                              \
  static target void name(const int64_t *key, int64_t n, real *y) {                 \
    for (int64_t i = 0; i < n; i += NUMBERS) {                                      \
      kind##_##real(key, (uint64_t)i, n - i < NUMBERS ? n - i : NUMBERS, &y[i]);    \
    }                                                                               \
  }
#define uniforms_float uniforms_float32
#define uniforms_double uniforms_float64
#define normals_float normals_float32
#define normals_double normals_float64

/* The words of counters. */
#define ENCRYPT(target, name)                                                               \
  static target void name(const uint64_t *key, int64_t n, const uint64_t *restrict counters, \
                          uint64_t *restrict first, uint64_t *restrict second) {            \
    uint32_t a = (uint32_t)key[0], b = (uint32_t)key[1];                                    \
    for (int64_t i = 0; i < n; i++) {                                                       \
      uint32_t x = (uint32_t)(counters[i] >> 32), y = (uint32_t)counters[i];                \
      threefry_2x32(a, b, &x, &y);                                                          \
      first[i] = x, second[i] = y;                                                          \
    }                                                                                       \
  }
#define ENCRYPT_FOUR(target, name)                                                              \
  static target void name(const int64_t *key, int64_t n, const int64_t *counters, int64_t *out) { \
    for (int64_t i = 0; i < n; i++) {                                                           \
      uint32_t words[4];                                                                        \
      for (int k = 0; k < 4; k++) words[k] = (uint32_t)counters[4 * i + k];                     \
      philox_4x32((uint32_t)key[0], (uint32_t)key[1], words);                                   \
      for (int k = 0; k < 4; k++) out[4 * i + k] = words[k];                                    \
    }                                                                                           \
  }

#define FORMS(target, end)                         \
  DRAW(target, uniforms, float, uniform_32##end)   \
  DRAW(target, uniforms, double, uniform_64##end)  \
  DRAW(target, normals, float, normal_32##end)     \
  DRAW(target, normals, double, normal_64##end)    \
  ENCRYPT(target, threefry##end)                   \
  ENCRYPT_FOUR(target, philox##end)
FORMS(, )
#ifdef WIDE
FORMS(WIDE, _wide)
#define BY_WIDTH(name) has_wide_vectors() ? name##_wide : name
#else
#define BY_WIDTH(name) name
#endif

static const char *check_key(const Array *key) {
  return key->rank == 1 && key->size == 2 ? NULL : "a key has two words";
}

static const char *infer_draws(const Kernel *kernel, const Array *in, Array *out, size_t *scratch) {
  (void)scratch;
  if (in[1].size != 1) return "a length is one integer";
  int64_t n = *(const int64_t *)in[1].data;
  out[0] = (Array){.dtype = kernel->result_dtype, .rank = 1, .shape = {n < 0 ? 0 : n}};
  return check_key(&in[0]);
}

#define RUN_DRAWS(draw, name, real)                                                       \
  static const char *name(const Kernel *kernel, const Array *in, Array *out, void *scratch) { \
    (void)kernel, (void)scratch;                                                          \
    (BY_WIDTH(draw))(in[0].data, out[0].shape[0], (real *)out[0].data);                   \
    return NULL;                                                                          \
  }
RUN_DRAWS(uniform_32, run_uniform_32, float)
RUN_DRAWS(uniform_64, run_uniform_64, double)
RUN_DRAWS(normal_32, run_normal_32, float)
RUN_DRAWS(normal_64, run_normal_64, double)

static const char *infer_threefry(const Kernel *kernel, const Array *in, Array *out,
                                  size_t *scratch) {
  (void)scratch;
  if (in[1].rank != 1) return "counters are a vector";
  out[0] = (Array){.dtype = kernel->result_dtype, .rank = 2, .shape = {2, in[1].shape[0]}};
  return check_key(&in[0]);
}

static const char *run_threefry(const Kernel *kernel, const Array *in, Array *out, void *scratch) {
  (void)kernel, (void)scratch;
  uint64_t *words = out[0].data;
  int64_t n = in[1].size;
  (BY_WIDTH(threefry))(in[0].data, n, in[1].data, words, words + n);
  return NULL;
}

static const char *infer_philox(const Kernel *kernel, const Array *in, Array *out,
                                size_t *scratch) {
  (void)scratch;
  if (in[1].rank != 2 || in[1].shape[1] != 4) return "a counter has four words";
  out[0] = (Array){.dtype = kernel->result_dtype, .rank = 2, .shape = {in[1].shape[0], 4}};
  return check_key(&in[0]);
}

static const char *run_philox(const Kernel *kernel, const Array *in, Array *out, void *scratch) {
  (void)kernel, (void)scratch;
  (BY_WIDTH(philox))(in[0].data, in[1].shape[0], in[1].data, out[0].data);
  return NULL;
}

#define CIPHER_KERNEL(name, infer, run, operands, results, sized_by) \
  {name, 2, 1, 0, 0, 0, infer, run, {NULL}, operands, 0, results, sized_by},
const Kernel CIPHER_KERNELS[] = {
    CIPHER_KERNEL("ThreefryUniform_float32", infer_draws, run_uniform_32, INT64, FLOAT32, 1)
    CIPHER_KERNEL("ThreefryUniform_float64", infer_draws, run_uniform_64, INT64, FLOAT64, 1)
    CIPHER_KERNEL("ThreefryNormal_float32", infer_draws, run_normal_32, INT64, FLOAT32, 1)
    CIPHER_KERNEL("ThreefryNormal_float64", infer_draws, run_normal_64, INT64, FLOAT64, 1)
    CIPHER_KERNEL("Threefry2x32", infer_threefry, run_threefry, UINT64, UINT64, 0)
    CIPHER_KERNEL("Philox4x32", infer_philox, run_philox, INT64, INT64, 0){NULL},
};
