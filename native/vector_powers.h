/* Powers by logarithms to the base two of 79 bits. Errors are below 1 ulp, and powers that are numbers
 * of double precision are exact.
 *
 * The quotient s = (z - 1) / (z + 1) and all products are split into parts of 26 bits, whose
 * products are exact without fused operations, as in FreeBSD's e_pow.c. */
#ifndef VECTOR_POWERS_H
#define VECTOR_POWERS_H

#include "vector_math.h"

/* Return the upper 26 bits of a number. */
INLINE double upper_bits(double x) { return from_bits(bits_of(x) & 0xfffffffff8000000); }

/* Return log2(x) of a positive number, of 26 bits, and what is left of it. */
INLINE double log2_parts(double x, double *rest) {
  double z, is_small = x < 0x1p-1022 ? 1 : 0;
  double k = exponent_of(is_small ? x * 0x1p54 : x, &z) - 54 * is_small;
  double f = z - 1, inverse = 1 / (z + 1), s = f * inverse;
  double s_high = upper_bits(s), t_high = upper_bits(z + 1), t_low = z - (t_high - 1);
  double s_low = inverse * ((f - s_high * t_high) - s_high * t_low);
  /* 3 (atanh(s) - s - s^3/3) / s^5, for z between sqrt(1/2) and sqrt(2) */
  double square = s_high * s_high, cross = s_low * (s_high + s);
  double s2 = square + cross, s4 = s2 * s2;
  double a = 0x1.3333333333333p-1 + s2 * 0x1.b6db6db6db7b2p-2;
  double b = 0x1.555555552ff8cp-2 + s2 * 0x1.1745d19bf0840p-2;
  double c = 0x1.d89d60bb25922p-3 + s2 * 0x1.99a52bd708da3p-3;
  double d = 0x1.679d96ac7bbebp-3 + s2 * 0x1.6822d3ff5dac6p-3;
  double tail = s4 * ((a + s4 * b) + s4 * s4 * (c + s4 * d)) + cross;
  /* (3 + s^2 + ...) s, of which the logarithm is the 2 / (3 log(2))-fold. */
  double sum_high = upper_bits(3 + square + tail), sum_low = tail - ((sum_high - 3) - square);
  double u = s_high * sum_high, v = s_low * sum_high + sum_low * s;
  double high = upper_bits(u + v), low = v - (high - u);
  double scaled_low = 0x1.0e80ff5d27f05p-27 * high + 0x1.ec709dc3a03fdp-1 * low;
  double scaled_high = 0x1.ec709d8000000p-1 * high;
  double result = upper_bits((scaled_high + scaled_low) + k);
  *rest = scaled_low - ((result - k) - scaled_high);
  return result;
}

/* Return 2^(x + rest), where rest is below 1e-9 for x between -1100 and 1100. */
INLINE double exp2_of_parts(double x, double rest) {
  double size = bounded(x, -1100, 1100), k = (size + SHIFT) - SHIFT;
  double left = size - k, high = upper_bits(left);
  double small = size == x ? rest : 0;
  double u = high * 0x1.62e42f8000000p-1;
  double v = ((left - high) + small) * 0x1.62e42fefa39efp-1 + high * 0x1.be8e7bcd5e4f2p-27;
  double w = u + v, lost = v - (w - u), sum = 1 + w;
  return scaled(sum + (((1 - sum) + w) + (w * w * exp_rest(w) + lost)), k);
}

/* Return x^y by the logarithm of a positive number x and its rest. */
INLINE double pow_of_parts(double high, double low, double y) {
  y = bounded(y, -0x1p65, 0x1p65); /* Larger ones make the same zeros and infinities. */
  double y_high = upper_bits(y), product = y_high * high;
  double small = (y - y_high) * high + y * low, sum = product + small;
  return exp2_of_parts(sum, small - (sum - product));
}

/* Whether bits have the first one set: of numbers but positive finite ones, and of large ones. */
INLINE uint64_t is_no_base(double x) {
  uint64_t below = bits_of(x) - 1;
  return below | (below + 0x0010000000000001);
}
INLINE uint64_t is_no_exponent(double y) { return bits_of(fabs(y)) + 0x3c00000000000000; }

/* Return a number of at least zero, rounded to a whole one. */
INLINE double whole_of(double x) { return x >= 0x1p52 ? x : (x + 0x1p52) - 0x1p52; }

/* Return x^y for all numbers, by that of |x|. */
INLINE double signed_power(double x, double y, double result) {
  double size = fabs(x), given = fabs(y), whole = whole_of(given);
  if (x == 1 || y == 0) return 1;
  if (x != x || y != y) return x + y;
  if (size == 0 || size == INFINITY) result = (size == 0) == (y > 0) ? 0 : INFINITY;
  if (!(bits_of(x) >> 63)) return result;
  if (whole != given) return size == 0 || size == INFINITY ? result : (double)NAN;
  return whole_of(0.5 * given) == 0.5 * given ? result : -result;
}

INLINE double exp2_of(double x) { return exp2_of_parts(x, 0); }

/* Return the given logarithm of a number with the values of C for numbers that have none. */
INLINE double log_or_special(double x, double result) {
  result = x < INFINITY ? result : x;
  result = x == 0 ? -INFINITY : result;
  return x < 0 ? (double)NAN : result;
}

INLINE double log2_of(double x) {
  double rest, high = log2_parts(x, &rest);
  return log_or_special(x, high + rest);
}

INLINE double log10_of(double x) {
  double rest, high = log2_parts(x, &rest);
  double low = high * 0x1.3ef3fde623e25p-31 + rest * 0x1.34413509f79ffp-2;
  return log_or_special(x, high * 0x1.344135000p-2 + low);
}

#endif
