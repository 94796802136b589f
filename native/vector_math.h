/* Elementary functions without branches and without products fused with sums, which compilers
 * vectorise, with equal results for all widths of vectors. Errors are below 1 ulp, of `expm1_of` and
 * `softplus_of` below 2, of `tanh_of` and `sigmoid_of` below 2.5. Coefficients interpolate at the nodes
 * of Chebyshev polynomials. */
#ifndef VECTOR_MATH_H
#define VECTOR_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

INLINE uint64_t bits_of(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

INLINE double from_bits(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static const double LN2_HIGH = 0x1.62e42fee00000p-1, LN2_LOW = 0x1.a39ef35793c76p-33;

/* A number whose last bits are those of an integer that is added to it. */
static const double SHIFT = 0x1.8p52;

/* Return 2 to the power of an integer between -1022 and 1023. */
INLINE double power_of_two(double k) { return from_bits((bits_of(k + SHIFT) + 1023) << 52); }

/* Return x * 2^k, where the result may be too small or too large for the power alone. */
INLINE double scaled(double x, double k) {
  double half = (k * 0.5 + SHIFT) - SHIFT;
  return x * power_of_two(half) * power_of_two(k - half);
}

/* (exp(x) - 1 - x) / x^2 for |x| <= ln(2) / 2. */
INLINE double exp_rest(double x) {
  double x2 = x * x, x4 = x2 * x2;
  double a = 0x1.0000000000000p-1 + x * 0x1.5555555555557p-3;
  double b = 0x1.5555555555556p-5 + x * 0x1.11111111100bep-7;
  double c = 0x1.6c16c16c162c3p-10 + x * 0x1.a01a01abf85abp-13;
  double d = 0x1.a01a01a6e1e2ap-16 + x * 0x1.71de01fdbf9cap-19;
  double e = 0x1.27e4db46cddd1p-22 + x * 0x1.af4e554377204p-26;
  double f = 0x1.1f7340dbc337ep-29;
  return (a + x2 * b) + x4 * ((c + x2 * d) + x4 * (e + x2 * f));
}

/* Return x between bounds, NaN as it is. */
INLINE double bounded(double x, double least, double most) {
  x = x < least ? least : x;
  return x > most ? most : x;
}

INLINE double exp_of(double x) {
  x = bounded(x, -750, 710);
  double k = (x * 0x1.71547652b82fep+0 + SHIFT) - SHIFT;
  double high = x - k * LN2_HIGH, low = k * LN2_LOW;
  double rest = high - low, lost = (high - rest) - low;
  double sum = 1 + rest, small = (1 - sum) + rest;
  return scaled(sum + (small + (rest * rest * exp_rest(rest) + lost)), k);
}

INLINE double expm1_of(double given) {
  double x = bounded(given, -40, 710);
  double k = (x * 0x1.71547652b82fep+0 + SHIFT) - SHIFT;
  double high = x - k * LN2_HIGH, low = k * LN2_LOW;
  double rest = high - low, lost = (high - rest) - low;
  double part = rest + (rest * rest * exp_rest(rest) + (lost + lost * rest));
  double one = power_of_two(bounded(-k, -64, 64));
  double result = scaled(part + (1 - one), k);
  return fabs(given) < 0x1p-54 ? given : result;
}

/* Return log(2^k * (1 + f)) for 1 + f between sqrt(1/2) and sqrt(2), with a small addend. */
INLINE double log_of_parts(double k, double f, double addend) {
  double s = f / (2 + f), z = s * s, z2 = z * z;
  double a = 0x1.5555555555558p-1 + z * 0x1.9999999995204p-2;
  double b = 0x1.2492492e09d1ap-2 + z * 0x1.c71c62c63e016p-3;
  double c = 0x1.7462bd8e53c17p-3 + z * 0x1.39fd39474ad34p-3;
  double r = z * ((a + z2 * b) + z2 * z2 * (c + z2 * 0x1.2b6686d1072f3p-3));
  double half = 0.5 * f * f;
  return k * LN2_HIGH - ((half - (s * (half + r) + (k * LN2_LOW + addend))) - f);
}

static const uint64_t ROOT_HALF = 0x3fe6a09e667f3bcd;

/* Return the exponent k of x = 2^k * z for z between sqrt(1/2) and sqrt(2), and set z. */
INLINE double exponent_of(double x, double *z) {
  const uint64_t bias = (uint64_t)1024 << 52;
  uint64_t biased = (bits_of(x) - ROOT_HALF + bias) >> 52;
  *z = from_bits(bits_of(x) - (biased << 52) + bias);
  return from_bits(biased | 0x4330000000000000) - (0x1p52 + 1024);
}

INLINE double log_of(double x) {
  double z, is_small = x < 0x1p-1022 ? 1 : 0;
  double k = exponent_of(is_small ? x * 0x1p54 : x, &z) - 54 * is_small;
  double result = log_of_parts(k, z - 1, 0);
  result = x < INFINITY ? result : x;
  result = x == 0 ? -INFINITY : result;
  return x < 0 ? (double)NAN : result;
}

INLINE double log1p_of(double x) {
  double u = 1 + x, z, k = exponent_of(u, &z);
  double lost = x > 1 ? 1 - (u - x) : x - (u - 1);
  double result = log_of_parts(k, k == 0 ? x : z - 1, k == 0 ? 0 : lost / u);
  result = x < INFINITY ? result : x;
  result = fabs(x) < 0x1p-54 ? x : result;
  result = x == -1 ? -INFINITY : result;
  return x < -1 ? (double)NAN : result;
}

INLINE double sigmoid_of(double x) {
  double e = exp_of(-fabs(x));
  double result = (x >= 0 ? 1 : e) / (1 + e);
  return x != x ? x : result;
}

/* Of an argument of at least 20, the result is rounded to one. */
INLINE double tanh_of(double x) {
  double size = fabs(x), e = expm1_of(2 * (size > 20 ? 20 : size));
  return copysign(e / (e + 2), x);
}

/* Hyperbolic sine and cosine of a number of at least zero, as sums of two numbers, both divided by
 * 2^(k - 1): with r = x - k log(2), they are (e^r - 4^-k e^-r) and (e^r + 4^-k e^-r). Return k. */
INLINE double hyperbolic_of(double x, double *sine, double *sine_rest, double *cosine,
                            double *cosine_rest) {
  double k = (x * 0x1.71547652b82fep+0 + SHIFT) - SHIFT;
  double high = x - k * LN2_HIGH, low = k * LN2_LOW;
  double r = high - low, lost = (high - r) - low, z = r * r, z2 = z * z;
  /* cosh(r) - 1 and sinh(r) - r, with the coefficients of exp_rest */
  double a = 0x1.0000000000000p-1 + z * 0x1.5555555555556p-5;
  double b = 0x1.6c16c16c162c3p-10 + z * 0x1.a01a01a6e1e2ap-16;
  double c = 0x1.27e4db46cddd1p-22 + z * 0x1.1f7340dbc337ep-29;
  double even = z * (a + z2 * (b + z2 * c)) + r * lost;
  double d = 0x1.5555555555557p-3 + z * 0x1.11111111100bep-7;
  double e = 0x1.a01a01abf85abp-13 + z * 0x1.71de01fdbf9cap-19;
  double odd = r * z * (d + z2 * (e + z2 * 0x1.af4e554377204p-26)) + lost;
  double q = power_of_two(bounded(-2 * k, -200, 0)), part = q * r;
  double less = 1 - q, more = 1 + q, difference = r - part, sum = r + part;
  *sine = less + sum;
  *sine_rest = ((less - *sine) + sum) + (part - (sum - r)) + ((1 - less) - q);
  *sine_rest += more * odd + less * even;
  *cosine = more + difference;
  *cosine_rest = ((more - *cosine) + difference) + ((r - difference) - part) + ((1 - more) + q);
  *cosine_rest += more * even + less * odd;
  return k;
}

INLINE double sinh_of(double x) {
  double sine, rest, cosine, of_cosine;
  double k = hyperbolic_of(bounded(fabs(x), 0, 711), &sine, &rest, &cosine, &of_cosine);
  return copysign(scaled(sine + rest, k - 1), x);
}

INLINE double cosh_of(double x) {
  double sine, of_sine, cosine, rest;
  double k = hyperbolic_of(bounded(fabs(x), 0, 711), &sine, &of_sine, &cosine, &rest);
  return scaled(cosine + rest, k - 1);
}

INLINE double softplus_of(double x) {
  double rest = log1p_of(exp_of(-fabs(x)));
  double result = (x > 0 ? x : 0) + rest;
  return x != x ? x : result;
}

#endif
