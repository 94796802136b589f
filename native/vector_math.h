/* Elementary functions without branches and without products fused with sums, which compilers
 * vectorise, with equal results for all widths of vectors. Errors are at most 1 ulp. Coefficients interpolate
 * at the nodes of Chebyshev polynomials. */
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

/* Return the whole number k of exp(x) = 2^k * (sum + rest), for x between -750 and 710. */
INLINE double exp_parts(double x, double *sum, double *rest) {
  double k = (x * 0x1.71547652b82fep+0 + SHIFT) - SHIFT;
  double high = x - k * LN2_HIGH, low = k * LN2_LOW;
  double r = high - low, lost = (high - r) - low;
  *sum = 1 + r;
  *rest = ((1 - *sum) + r) + (r * r * exp_rest(r) + lost);
  return k;
}

INLINE double exp_of(double x) {
  double sum, rest, k = exp_parts(bounded(x, -750, 710), &sum, &rest);
  return scaled(sum + rest, k);
}

INLINE double expm1_of(double given) {
  double x = bounded(given, -40, 710);
  double k = (x * 0x1.71547652b82fep+0 + SHIFT) - SHIFT;
  double high = x - k * LN2_HIGH, low = k * LN2_LOW;
  double r = high - low, lost = (high - r) - low;
  double rest = r * r * exp_rest(r) + (lost + lost * r);
  double one = power_of_two(bounded(-k, -64, 64)), less = 1 - one, sum = less + r;
  double result = scaled(sum + (((less - sum) + r) + (((1 - less) - one) + rest)), k);
  return fabs(given) < 0x1p-54 ? given : result;
}

/* Return k log(2) + f - log(2^k * (1 + f)), of k log(2) the first bits, for 1 + f between sqrt(1/2)
 * and sqrt(2), less a small addend. */
INLINE double log_rest(double k, double f, double addend) {
  double s = f / (2 + f), z = s * s, z2 = z * z;
  double a = 0x1.5555555555558p-1 + z * 0x1.9999999995204p-2;
  double b = 0x1.2492492e09d1ap-2 + z * 0x1.c71c62c63e016p-3;
  double c = 0x1.7462bd8e53c17p-3 + z * 0x1.39fd39474ad34p-3;
  double r = z * ((a + z2 * b) + z2 * z2 * (c + z2 * 0x1.2b6686d1072f3p-3));
  double half = 0.5 * f * f;
  return half - (s * (half + r) + (k * LN2_LOW + addend));
}

/* Return log(2^k * (1 + f)) with a small addend. */
INLINE double log_of_parts(double k, double f, double addend) {
  return k * LN2_HIGH - (log_rest(k, f, addend) - f);
}

static const uint64_t ROOT_HALF = 0x3fe6a09e667f3bcd;

/* Return the exponent k of x = 2^k * z for z between sqrt(1/2) and sqrt(2), and set z. */
INLINE double exponent_of(double x, double *z) {
  const uint64_t bias = (uint64_t)1024 << 52;
  uint64_t biased = (bits_of(x) - ROOT_HALF + bias) >> 52;
  *z = from_bits(bits_of(x) - (biased << 52) + bias);
  return from_bits(biased | 0x4330000000000000) - (0x1p52 + 1024);
}

/* The logarithm of a positive normal number, with the operations of `log_of_normal` in
 * functions/special/exponential.py. */
INLINE double log_of_normal(double x) {
  double all = x * 0x1p52, power = all - fabs(all - x * 1.0606601717798212);
  double k = from_bits(bits_of(power) >> 52 | 0x4330000000000000) - (0x1p52 + 1023);
  double f = x * from_bits(((uint64_t)2046 << 52) - bits_of(power)) - 1, s = f / (2 + f);
  double z = s * s, r = 0.14616878919029822;
  r = r * z + 0.15331686868638428;
  r = r * z + 0.1818289017031397;
  r = r * z + 0.22222211120449298;
  r = r * z + 0.2857142862606338;
  r = r * z + 0.3999999999989931;
  r = r * z + 0.666666666666667;
  double rest = s * (f - z * r);
  return k * 0.6931471803691238 - ((rest - k * 1.9082149292705877e-10) - f);
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

/* Return the first 26 bits of a number. */
INLINE double short_of(double x) { return from_bits(bits_of(x) & ~(uint64_t)0x7ffffff); }

/* Return the quotient of sums of a number and a smaller one. */
INLINE double quotient(double x, double x_rest, double y, double y_rest) {
  double whole = y + y_rest, rest = (y - whole) + y_rest;
  double inverse = 1 / whole, first = short_of(x * inverse), head = short_of(whole);
  double left = (x - first * head) - first * (whole - head);
  return first + (left + (x_rest - first * rest)) * inverse;
}

/* exp(-|x|) / (1 + exp(-|x|)), or 1 divided by that sum. */
INLINE double sigmoid_of(double x) {
  double sum, rest, k = exp_parts(bounded(-fabs(x), -750, 0), &sum, &rest);
  double half = (k * 0.5 + SHIFT) - SHIFT;
  double first = power_of_two(half), second = power_of_two(k - half), power = first * second;
  double e = sum * power, more = 1 + e, more_rest = (e - (more - 1)) + rest * power;
  int is_negative = x < 0;
  double result = quotient(is_negative ? sum : 1, is_negative ? rest : 0, more, more_rest);
  result = result * (is_negative ? first : 1) * (is_negative ? second : 1);
  return x != x ? x : result;
}

/* Of an argument of at least 20, the result is rounded to one. */
INLINE double tanh_of(double x) {
  double sine, sine_rest, cosine, cosine_rest;
  hyperbolic_of(bounded(fabs(x), 0, 20), &sine, &sine_rest, &cosine, &cosine_rest);
  return copysign(quotient(sine, sine_rest, cosine, cosine_rest), x);
}

/* The logarithm of 1 + exp(-|x|), whose integer k of `exponent_of` is 0 or 1, on the larger of x and 0. */
INLINE double softplus_of(double x) {
  double sum, rest, z, power = exp_parts(bounded(-fabs(x), -750, 0), &sum, &rest);
  double first = sum + rest, e = scaled(first, power);
  double e_rest = ((sum - first) + rest) * power_of_two(bounded(power, -100, 0));
  double more = 1 + e, k = exponent_of(more, &z), lost = k == 0 ? 0 : e - (more - 1);
  double f = k == 0 ? e : z - 1, log = log_rest(k, f, (lost + (power < -60 ? 0 : e_rest)) / more);
  double start = k * LN2_HIGH, above = x > 0 ? x : 0;
  double part = start + above, part_rest = (start - part) + above;
  double whole = part + f, whole_rest = ((part - whole) + f) + part_rest;
  double result = whole - (log - whole_rest);
  return x < 40 ? result : x;
}

/* log(1 - exp(x)) of a number of at most zero. */
INLINE double log1mexp_of(double x) {
  double sum, rest, z, k = exp_parts(bounded(x, -750, 0), &sum, &rest);
  double half = (k * 0.5 + SHIFT) - SHIFT;
  double first = power_of_two(half), second = power_of_two(k - half), power = first * second;
  double e = sum * power, e_rest = rest * power;
  double less = 1 - e, less_rest = ((1 - less) - e) - e_rest;
  double share = less + less_rest, share_rest = (less - share) + less_rest;
  double whole = sum + rest, share_of_one = whole * first * second;
  double lost = k < -60 ? 0 : ((sum - whole) + rest) * power;
  double exponent = exponent_of(share < 0x1p-1022 ? share * 0x1p54 : share, &z);
  exponent -= share < 0x1p-1022 ? 54 : 0;
  double f = exponent == 0 ? -share_of_one : z - 1;
  double result = log_of_parts(exponent, f, (exponent == 0 ? -lost : share_rest) / share);
  result = share_of_one < 0x1p-54 ? -share_of_one : result;
  result = x == 0 ? -INFINITY : result;
  return x <= 0 ? result : (double)NAN;
}

/* log(1 + x + rest) for numbers of at least zero, where a large x stands for twice itself. */
INLINE double log1p_of_sum(double x, double rest, int is_large) {
  double u = is_large ? x : 1 + x, z, k = exponent_of(u, &z);
  double lost = x > 1 ? 1 - (u - x) : x - (u - 1);
  lost = k == 0 || is_large ? 0 : lost;
  double result = log_of_parts(is_large ? k + 1 : k, k == 0 ? x : z - 1, (lost + rest) / u);
  return x < INFINITY ? result : x;
}

/* Return what is left of a product that is rounded. */
INLINE double product_rest(double x, double y, double product) {
  double x_head = short_of(x), x_tail = x - x_head, y_head = short_of(y), y_tail = y - y_head;
  return ((x_head * y_head - product) + (x_head * y_tail + x_tail * y_head)) + x_tail * y_tail;
}

/* Return what is left of the root of a sum of a number and a small one. */
INLINE double root_rest(double x, double rest, double root) {
  double square = root * root;
  return (((x - square) - product_rest(root, root, square)) + rest) * (0.5 / root);
}

/* The argument of the logarithm, less one, is x + (sqrt(1 + x^2) - 1). */
INLINE double asinh_of(double given) {
  double x = fabs(given), a = x > 0x1p30 ? 1 : x, square = a * a, sum = 1 + square;
  double lost = a > 1 ? (square - sum) + 1 : (1 - sum) + square, root = sqrt(sum);
  double less = root - 1, less_rest = (root - less) - 1;
  double rest = root_rest(sum, lost + product_rest(a, a, square), root);
  double whole = a + less;
  rest += (a > less ? (a - whole) + less : (less - whole) + a) + less_rest;
  int is_large = x > 0x1p30;
  double result = log1p_of_sum(is_large ? x : whole, is_large ? 0 : rest, is_large);
  return copysign(x < 0x1p-54 ? x : result, given);
}

/* The argument of the logarithm, less one, is t + sqrt(t (2 + t)) for t = x - 1. */
INLINE double acosh_of(double x) {
  double t = (x > 0x1p30 ? 2 : x) - 1, sum = 2 + t, lost = t > 2 ? (t - sum) + 2 : (2 - sum) + t;
  double square = t * sum, root = sqrt(square), whole = root + t;
  double rest = root_rest(square, product_rest(t, sum, square) + t * lost, root);
  rest = t == 0 ? 0 : rest + ((root - whole) + t);
  int is_large = x > 0x1p30;
  double result = log1p_of_sum(is_large ? x : whole, is_large ? 0 : rest, is_large);
  return x >= 1 ? result : x == x ? (double)NAN : x;
}

INLINE double atanh_of(double given) {
  double x = fabs(given), less = 1 - x, rest = (1 - less) - x;
  double inverse = 1 / less, first = short_of(2 * x * inverse), head = short_of(less);
  double left = ((2 * x - first * head) - first * (less - head)) - first * rest;
  double correction = left * inverse, sum = first + correction;
  double result = 0.5 * log1p_of_sum(sum, (first - sum) + correction, 0);
  result = x == 1 ? INFINITY : x < 0x1p-54 ? x : result;
  return x <= 1 ? copysign(result, given) : (double)NAN;
}

#endif
