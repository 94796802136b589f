/* Kernels of the draws of PyTensor's generators: `pytensor_onnx.functions.random.streams`. */
#include "ciphers.h"

#include "kernel.h"
#include "vector_math.h"

/* Words that are made at once, an even number. */
enum { WORDS = 256, STATE = 3, COUNTER = 2 };

#define SCALED_UP(bits, exponent) from_bits((bits) | (uint64_t)(exponent) << 52)

/* Return words of a state from a place on, of which `blocks` has room for one block more. */
CIPHER const uint64_t *words_at(const uint64_t *state, int64_t place, int64_t count,
                                uint64_t *restrict blocks) {
  uint64_t a = state[0], b = state[1], counter = state[COUNTER] + (uint64_t)place;
  int64_t second = counter & 1, last = (second + count + 1) / 2;
  for (int64_t i = 0; i < last; i++) {
    uint64_t x = (counter + 2 * (uint64_t)i) >> 1, y = 0;
    threefry_2x64(a, b, &x, &y);
    blocks[2 * i] = x, blocks[2 * i + 1] = y;
  }
  return blocks + second;
}

/* Numbers of the upper bits of words, and of halves of words. */
CIPHER double closed_double(uint64_t word) {
  double upper = SCALED_UP(word >> 43, 1107) - (0x1p84 + 0x1p52);
  return (upper + SCALED_UP(word >> 11 & 0xffffffff, 1075)) * 0x1p-53;
}
CIPHER double open_double(uint64_t word) {
  return (SCALED_UP(word >> 12, 1075) - 0x1p52 + 0.5) * 0x1p-52;
}
CIPHER float closed_float(uint32_t half) { return (float)(int32_t)(half >> 8) * 0x1p-24f; }
CIPHER float open_float(uint32_t half) {
  return ((float)(int32_t)(half >> 9) + 0.5f) * 0x1p-23f;
}

/* The operations of `log_of_normal` in functions/special/exponential.py, for float32. */
CIPHER float log_of_normal_float(float x) {
  float all = x * 0x1p23f, power = all - fabsf(all - x * 1.0606601717798212f), inverse;
  uint32_t bits, reversed;
  memcpy(&bits, &power, sizeof bits);
  reversed = ((uint32_t)254 << 23) - bits;
  memcpy(&inverse, &reversed, sizeof inverse);
  float k = (float)((int32_t)(bits >> 23) - 127), f = x * inverse - 1, s = f / (2 + f);
  float z = s * s, r = 0.295802772f;
  r = r * z + 0.399887733f;
  r = r * z + 0.666666851f;
  float rest = s * (f - z * r);
  return k * 0.693359375f - ((rest - k * -2.12194440e-4f) - f);
}
CIPHER double log_of_normal_double(double x) { return log_of_normal(x); }

CIPHER double sine_rest_double(double z) {
  double r = 1.591791417048074e-10;
  r = r * z + -2.5051128856786725e-08;
  r = r * z + 2.7557316088203675e-06;
  r = r * z + -0.0001984126983673089;
  r = r * z + 0.00833333333333093;
  return r * z + -0.16666666666666666;
}
CIPHER double cosine_rest_double(double z) {
  double r = -1.1382497845488828e-11;
  r = r * z + 2.0876144399012594e-09;
  r = r * z + -2.7557317262753467e-07;
  r = r * z + 2.480158729874837e-05;
  r = r * z + -0.0013888888888887387;
  return r * z + 0.041666666666666664;
}
CIPHER float sine_rest_float(float z) {
  float r = -0.000195875049f;
  r = r * z + 0.00833274648f;
  return r * z + -0.166666647f;
}
CIPHER float cosine_rest_float(float z) {
  float r = 2.45475553e-05f;
  r = r * z + -0.00138883012f;
  return r * z + 0.0416666647f;
}

/* The transform of Box and Muller, of a distance in (0, 1] and an angle in turns. */
#define NORMALS(real, root, shift, half_pi)                                                 \
  CIPHER void normals_##real(const real *restrict distance, const real *restrict turn,      \
                             int64_t count, real *restrict first, real *restrict second) {  \
    for (int64_t i = 0; i < count; i++) {                                                   \
      real radius = root(-2 * log_of_normal_##real(distance[i]));                           \
      real quarters = turn[i] * 4, whole = (quarters + shift) - shift;                      \
      real angle = (quarters - whole) * half_pi, z = angle * angle;                         \
      real sine = angle + angle * (z * sine_rest_##real(z));                                \
      real cosine = 1 - ((real)0.5 * z - z * z * cosine_rest_##real(z));                    \
      int is_odd = whole == 1 || whole == 3;                                                \
      real y = is_odd ? cosine : sine, x = is_odd ? sine : cosine;                          \
      y = whole == 2 || whole == 3 ? -y : y;                                                \
      x = whole == 1 || whole == 2 ? -x : x;                                                \
      first[i] = radius * x;                                                                \
      second[i] = radius * y;                                                               \
    }                                                                                       \
  }
NORMALS(double, sqrt, 0x1.8p52, 1.5707963267948966)
NORMALS(float, sqrtf, 0x1.8p23f, 1.5707963267948966f)

/* Put pairs from a place on where they belong: each beside its other, or all first ones first. */
#define PUT_PAIRS(real)                                                                       \
  CIPHER void put_pairs_##real(const real *first, const real *second, int64_t place,          \
                               int64_t count, int64_t n, int is_paired, real *y) {            \
    int64_t step = is_paired ? 2 : 1, after = is_paired ? 1 : (n + 1) / 2;                    \
    real *to = y + place * step;                                                              \
    int64_t left = n - place * step - after, most = is_paired ? (left + 1) / 2 : left;        \
    for (int64_t i = 0; i < count; i++) to[i * step] = first[i];                              \
    for (int64_t i = 0; i < count && i < most; i++) to[i * step + after] = second[i];         \
  }
PUT_PAIRS(double)
PUT_PAIRS(float)

CIPHER void pairs_double(const uint64_t *state, int64_t n, int is_paired, double *y) {
  uint64_t blocks[WORDS + 2], others[WORDS + 2];
  double distance[WORDS], turn[WORDS], first[WORDS], second[WORDS];
  int64_t pairs = (n + 1) / 2, step = is_paired ? WORDS / 2 : WORDS;
  for (int64_t i = 0; i < pairs; i += step) {
    int64_t count = pairs - i < step ? pairs - i : step;
    if (is_paired) {
      const uint64_t *words = words_at(state, 2 * i, 2 * count, blocks);
      for (int64_t k = 0; k < count; k++) distance[k] = 1 - closed_double(words[2 * k]);
      for (int64_t k = 0; k < count; k++) turn[k] = closed_double(words[2 * k + 1]);
    } else {
      const uint64_t *words = words_at(state, i, count, blocks);
      const uint64_t *rest = words_at(state, pairs + i, count, others);
      for (int64_t k = 0; k < count; k++) distance[k] = 1 - closed_double(words[k]);
      for (int64_t k = 0; k < count; k++) turn[k] = closed_double(rest[k]);
    }
    normals_double(distance, turn, count, first, second);
    put_pairs_double(first, second, i, count, n, is_paired, y);
  }
}

CIPHER void pairs_float(const uint64_t *state, int64_t n, int is_paired, float *y) {
  uint64_t blocks[WORDS + 2];
  float distance[WORDS], turn[WORDS], first[WORDS], second[WORDS];
  int64_t pairs = (n + 1) / 2;
  for (int64_t i = 0; i < pairs; i += WORDS) {
    int64_t count = pairs - i < WORDS ? pairs - i : WORDS;
    const uint64_t *words = words_at(state, i, count, blocks);
    for (int64_t k = 0; k < count; k++) {
      distance[k] = ((float)(uint32_t)(words[k] >> 32) + 0.5f) * 0x1p-32f;
      turn[k] = closed_float((uint32_t)words[k]);
    }
    normals_float(distance, turn, count, first, second);
    put_pairs_float(first, second, i, count, n, is_paired, y);
  }
}

CIPHER void bits_of_words(const uint64_t *state, int64_t n, uint64_t *y) {
  uint64_t blocks[WORDS + 2];
  for (int64_t i = 0; i < n; i += WORDS) {
    int64_t count = n - i < WORDS ? n - i : WORDS;
    memcpy(&y[i], words_at(state, i, count, blocks), (size_t)count * sizeof *y);
  }
}

#define UNIFORMS(kind)                                                                     \
  CIPHER void kind##_doubles(const uint64_t *state, int64_t n, double *y) {                \
    uint64_t blocks[WORDS + 2];                                                            \
    for (int64_t i = 0; i < n; i += WORDS) {                                               \
      int64_t count = n - i < WORDS ? n - i : WORDS;                                       \
      const uint64_t *words = words_at(state, i, count, blocks);                           \
      for (int64_t k = 0; k < count; k++) y[i + k] = kind##_double(words[k]);              \
    }                                                                                      \
  }                                                                                        \
  /* The upper halves of all words, then the lower ones. */                                \
  CIPHER void kind##_floats(const uint64_t *state, int64_t n, float *y) {                  \
    uint64_t blocks[WORDS + 2];                                                            \
    int64_t all = (n + 1) / 2;                                                             \
    for (int64_t i = 0; i < all; i += WORDS) {                                             \
      int64_t count = all - i < WORDS ? all - i : WORDS;                                   \
      int64_t left = n - all - i, rest = left < count ? left : count;                      \
      const uint64_t *words = words_at(state, i, count, blocks);                           \
      for (int64_t k = 0; k < count; k++) y[i + k] = kind##_float((uint32_t)(words[k] >> 32)); \
      for (int64_t k = 0; k < rest; k++) y[all + i + k] = kind##_float((uint32_t)words[k]); \
    }                                                                                      \
  }
UNIFORMS(closed)
UNIFORMS(open)

#define DRAW(target, name, real, ...)                              \
  static target void name(const uint64_t *state, int64_t n, void *out) { \
    real *y = out;                                                 \
    __VA_ARGS__;                                                   \
  }
#define DRAWS(target, end)                                                    \
  DRAW(target, bits_64##end, uint64_t, bits_of_words(state, n, y))            \
  DRAW(target, uniform_64##end, double, closed_doubles(state, n, y))          \
  DRAW(target, uniform_32##end, float, closed_floats(state, n, y))            \
  DRAW(target, open_64##end, double, open_doubles(state, n, y))               \
  DRAW(target, open_32##end, float, open_floats(state, n, y))                 \
  DRAW(target, normal_64##end, double, pairs_double(state, n, 0, y))          \
  DRAW(target, normal_32##end, float, pairs_float(state, n, 0, y))            \
  DRAW(target, paired_64##end, double, pairs_double(state, n, 1, y))          \
  DRAW(target, paired_32##end, float, pairs_float(state, n, 1, y))
DRAWS(, )
#ifdef WIDE
DRAWS(WIDE, _wide)
#define BY_WIDTH(name) has_wide_vectors() ? name##_wide : name
#else
#define BY_WIDTH(name) name
#endif

static const char *infer_draw(const Kernel *kernel, const Array *in, Array *out, size_t *scratch) {
  (void)scratch;
  if (in[0].rank != 1 || in[0].size != STATE) return "a state has three words";
  if (in[1].size != 1) return "a length is one integer";
  int64_t n = *(const int64_t *)in[1].data;
  out[0] = (Array){.dtype = UINT64, .rank = 1, .shape = {STATE}};
  out[1] = (Array){.dtype = kernel->second_dtype, .rank = 1, .shape = {n < 0 ? 0 : n}};
  return NULL;
}

static void run_draw(const Array *in, Array *out, int64_t words,
                     void (*draw)(const uint64_t *, int64_t, void *)) {
  uint64_t *after = out[0].data, state[STATE];
  memcpy(state, in[0].data, sizeof state);
  draw(state, out[1].shape[0], out[1].data);
  memcpy(after, state, sizeof state);
  after[COUNTER] += (uint64_t)words;
}

/* The words of n numbers: one each, one for two numbers of float32, those of whole pairs. A length
 * below zero counts as the body counts it, by quotients that are rounded down. */
#define EACH(n) (n)
#define HALF(n) (((n) + 1) >> 1)
#define EVEN(n) (HALF(n) * 2)
#define RUN(draw, words)                                                                       \
  static const char *run_##draw(const Kernel *kernel, const Array *in, Array *out, void *scratch) { \
    (void)kernel, (void)scratch;                                                               \
    run_draw(in, out, words(*(const int64_t *)in[1].data), BY_WIDTH(draw));                    \
    return NULL;                                                                               \
  }
RUN(bits_64, EACH)
RUN(uniform_64, EACH)
RUN(uniform_32, HALF)
RUN(open_64, EACH)
RUN(open_32, HALF)
RUN(normal_64, EVEN)
RUN(normal_32, HALF)
RUN(paired_64, EVEN)
RUN(paired_32, HALF)

#define DRAW_KERNEL(function, runs, numbers)                                    \
  {.name = function, .inputs = 2, .outputs = 2, .second_dtype = numbers,        \
   .infer = infer_draw, .run = runs, .operand_dtype = UINT64,                   \
   .second_operand = INT64, .result_dtype = UINT64, .sized_by = 1},
const Kernel DRAW_KERNELS[] = {
    DRAW_KERNEL("RandomBits_uint64_int64", run_bits_64, UINT64)
    DRAW_KERNEL("StandardUniform_float64", run_uniform_64, FLOAT64)
    DRAW_KERNEL("StandardUniform_float32", run_uniform_32, FLOAT32)
    DRAW_KERNEL("OpenUniform_float64", run_open_64, FLOAT64)
    DRAW_KERNEL("OpenUniform_float32", run_open_32, FLOAT32)
    DRAW_KERNEL("StandardNormal_float64", run_normal_64, FLOAT64)
    DRAW_KERNEL("StandardNormal_float32", run_normal_32, FLOAT32)
    DRAW_KERNEL("NormalPairs_float64", run_paired_64, FLOAT64)
    DRAW_KERNEL("NormalPairs_float32", run_paired_32, FLOAT32){NULL},
};
