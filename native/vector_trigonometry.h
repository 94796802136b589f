/* Sines, cosines, tangents and their inverses. Errors are below 1 ulp, of `tan_of` below 2.
 *
 * Quarter turns are subtracted in four parts (W. J. Cody and W. Waite, Software Manual for the
 * Elementary Functions, 1980), from FAR on by whole numbers (M. H. Payne and R. N. Hanek, SIGNUM
 * Newsletter 18 (1983) 19-24). Coefficients are those of scripts/fit_coefficients.py. */
#ifndef VECTOR_TRIGONOMETRY_H
#define VECTOR_TRIGONOMETRY_H

#include "vector_math.h"
#include "vector_powers.h"

/* The first number whose quarter turns have more than 20 bits. */
#define FAR 0x1p20
/* Whether the first bit is set: of FAR and above, and of NaN. */
INLINE uint64_t is_far(double x) { return bits_of(fabs(x)) + 0x3ed0000000000000; }

/* Subtract quarter turns from a number below FAR: their number, and the rest of twice the precision. */
INLINE double less_turns(double x, double *r, double *rest) {
  double k = (x * 0x1.45f306dc9c883p-1 + SHIFT) - SHIFT;
  double part = k * 0x1.0b4611a600000p-34, a = x - k * 0x1.921fb54400000p+0, b = a - part;
  double lost = (a - b) - part;
  part = k * 0x1.3198a2e000000p-69;
  *r = b - part;
  *rest = (lost + ((b - *r) - part)) - k * 0x1.b839a252049c1p-104;
  return k;
}

/* Sine and cosine of r + rest, of at most pi/4, as sums of two numbers. */
INLINE double sine_of(double r, double rest, double *small) {
  double x = r * r, x2 = x * x;
  double a = -0x1.5555555555555p-3 + x * 0x1.1111111110ba8p-7;
  double b = -0x1.a01a019e812c9p-13 + x * 0x1.71de37934ee9ap-19;
  double c = -0x1.ae6007a56aa8dp-26 + x * 0x1.5e09e3f1cd7b0p-33;
  *small = rest + x * (r * (a + x2 * (b + x2 * c)) - 0.5 * rest);
  return r;
}
INLINE double cosine_of(double r, double rest, double *small) {
  double x = r * r, x2 = x * x, half = 0.5 * x, near = 1 - half;
  double a = 0x1.5555555555555p-5 - x * 0x1.6c16c16c16962p-10;
  double b = 0x1.a01a019f4d709p-16 - x * 0x1.27e4fa163c142p-22;
  double c = 0x1.1eeb673a2e0cap-29 - x * 0x1.907c6d159beaap-37;
  *small = ((1 - near) - half) + (x2 * (a + x2 * (b + x2 * c)) - r * rest);
  return near;
}

/* Return one number for an odd count of quarter turns, another for an even one. */
INLINE double by_turns(uint64_t turns, double odd, double even) {
  uint64_t is_odd = 0 - (turns & 1);
  return from_bits((bits_of(odd) & is_odd) | (bits_of(even) & ~is_odd));
}

/* Sine and tangent of the quarter turns whose last bits are given, and of r + rest beyond. */
INLINE double sine_in_quadrant(uint64_t turns, double r, double rest) {
  double a, b, sine = sine_of(r, rest, &a), cosine = cosine_of(r, rest, &b);
  double result = by_turns(turns, cosine + b, sine + a);
  return from_bits(bits_of(result) ^ (turns >> 1) << 63);
}
INLINE double tangent_in_quadrant(uint64_t turns, double r, double rest) {
  double a, b, sine = sine_of(r, rest, &a), cosine = cosine_of(r, rest, &b);
  double s = sine + a, c = cosine + b;
  double of_sine = a - (s - sine), of_cosine = b - (c - cosine); /* what rounding has lost */
  double above = by_turns(turns, c, s), below = by_turns(turns, s, c);
  double quotient = above / below;
  double lost = by_turns(turns, of_cosine, of_sine) - quotient * by_turns(turns, of_sine, of_cosine);
  return from_bits(bits_of(quotient + lost / below) ^ turns << 63);
}

INLINE double sin_of(double x) {
  double r, rest, k = less_turns(x, &r, &rest);
  double result = sine_in_quadrant(bits_of(k + SHIFT), r, rest);
  return fabs(x) < 0x1p-27 ? x : result; /* zeros keep their sign */
}

INLINE double cos_of(double x) {
  double r, rest, k = less_turns(x, &r, &rest);
  return sine_in_quadrant(bits_of(k + SHIFT) + 1, r, rest);
}

INLINE double tan_of(double x) {
  double r, rest, k = less_turns(x, &r, &rest);
  double result = tangent_in_quadrant(bits_of(k + SHIFT), r, rest);
  return fabs(x) < 0x1p-27 ? x : result;
}

/* The bits of 2/pi, after 64 zeros. */
static const uint64_t TURNS[] = {
    0, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
    0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
    0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab,
};

/* Subtract quarter turns from a finite number of at least FAR: the last bits of their number. */
static uint64_t less_many_turns(double x, double *r, double *rest) {
  typedef unsigned __int128 Wide;
  uint64_t digits = (bits_of(x) & 0xfffffffffffff) | (uint64_t)1 << 52, word[3];
  int place = (int)(bits_of(fabs(x)) >> 52) - 1023 - 52 + 62, shift = place & 63;
  /* The digits times 192 bits of 2/pi, before which are whole multiples of four turns. */
  for (int i = 0; i < 3; i++) {
    const uint64_t *at = &TURNS[place / 64 + i];
    word[i] = shift ? at[0] << shift | at[1] >> (64 - shift) : at[0];
  }
  Wide last = (Wide)digits * word[2], middle = (Wide)digits * word[1] + (uint64_t)(last >> 64);
  uint64_t first = digits * word[0] + (uint64_t)(middle >> 64);
  Wide upper = (Wide)first << 64 | (uint64_t)middle;
  uint64_t turns = first >> 62;
  Wide part = upper << 2 | (uint64_t)last >> 62; /* of a turn, below one half or negative */
  int is_negative = (int)(part >> 127);
  turns += (uint64_t)is_negative;
  if (is_negative) part = -part;
  double high = (double)part, low = (double)(__int128)(part - (Wide)high);
  const double half_pi = 0x1.921fb54442d18p+0, half_high = 0x1.921fb50000000p+0;
  double product = high * half_pi, top = upper_bits(high), left = high - top;
  double lost = ((top * half_high - product) + top * (half_pi - half_high)) + left * half_high;
  lost += left * (half_pi - half_high) + (high * 0x1.1a62633145c07p-54 + low * half_pi);
  double scale = (is_negative != (x < 0) ? -1 : 1) * 0x1p-128;
  *r = product * scale;
  *rest = lost * scale;
  return x < 0 ? 0 - turns : turns;
}

static double far_sin(double x) {
  double r, rest;
  if (!(fabs(x) < INFINITY)) return x - x;
  uint64_t turns = less_many_turns(x, &r, &rest);
  return sine_in_quadrant(turns, r, rest);
}
static double far_cos(double x) {
  double r, rest;
  if (!(fabs(x) < INFINITY)) return x - x;
  uint64_t turns = less_many_turns(x, &r, &rest);
  return sine_in_quadrant(turns + 1, r, rest);
}
static double far_tan(double x) {
  double r, rest;
  if (!(fabs(x) < INFINITY)) return x - x;
  uint64_t turns = less_many_turns(x, &r, &rest);
  return tangent_in_quadrant(turns, r, rest);
}

static const double HALF_PI = 0x1.921fb54442d18p+0, HALF_PI_LOW = 0x1.1a62633145c07p-54;

/* (asin(x) / x - 1) / x^2 of the square of a number of at most 1/2. */
INLINE double asin_rest(double z) {
  double z2 = z * z, z4 = z2 * z2;
  double a = 0x1.5555555555556p-3 + z * 0x1.3333333332ecap-4;
  double b = 0x1.6db6db6e31f13p-5 + z * 0x1.f1c71c1db0623p-6;
  double c = 0x1.6e8bb1c8209a2p-6 + z * 0x1.1c4d35cf95421p-6;
  double d = 0x1.c9cf07674736ap-7 + z * 0x1.782651caa6547p-7;
  double e = 0x1.52420b04b37bep-7 + z * 0x1.65a9c4dfcf8b2p-8;
  double f = 0x1.1d189408314eep-6 + z * -0x1.e6aaa8a0a04ccp-7;
  double g = f + z2 * 0x1.d72b2bc8155f8p-6;
  return (a + z2 * b) + z4 * ((c + z2 * d) + z4 * (e + z2 * g));
}

/* The root s of z = (1 - x) / 2 and what is added to its upper bits for asin(s), for x >= 1/2. */
INLINE double half_angle(double z, double *rest) {
  double s = sqrt(z), high = upper_bits(s), low = (z - high * high) / (s + high);
  *rest = (s > 0 ? low : 0) + s * z * asin_rest(z);
  return high;
}

/* Return base + x + rest, where the base is zero or the largest number. */
INLINE double sum_of_three(double base, double x, double rest) {
  double sum = base + x;
  return sum + (((base - sum) + x) + rest);
}

INLINE double asin_of(double given) {
  double x = fabs(given), z = x * x, rest;
  double high = half_angle((1 - x) * 0.5, &rest);
  double near = x + x * z * asin_rest(z);
  double far = sum_of_three(HALF_PI, -2 * high, HALF_PI_LOW - 2 * rest);
  return copysign(x < 0.5 ? near : far, given);
}

INLINE double acos_of(double x) {
  double size = fabs(x), z = x * x, rest;
  double high = half_angle((1 - size) * 0.5, &rest);
  double near = sum_of_three(HALF_PI, -x, HALF_PI_LOW - x * z * asin_rest(z));
  double below = sum_of_three(2 * HALF_PI, -2 * high, 2 * HALF_PI_LOW - 2 * rest);
  return size < 0.5 ? near : x < 0 ? below : 2 * (high + rest);
}

/* Subtract the nearest of five angles, whose tangents are 0, 1/2, 1, 3/2 and infinite. */
INLINE double atan_of(double given) {
  double x = bounded(fabs(given), 0, 0x1p1000);
  double p = 0, q = 1, high = HALF_PI, low = HALF_PI_LOW;
#define BELOW(bound, value, other) value = x < bound ? other : value
  BELOW(2.4375, p, 1), BELOW(2.4375, q, 1.5);
  BELOW(2.4375, high, 0x1.f730bd281f69bp-1), BELOW(2.4375, low, 0x1.007887af0cbbdp-56);
  BELOW(1.1875, q, 1), BELOW(1.1875, high, HALF_PI / 2), BELOW(1.1875, low, HALF_PI_LOW / 2);
  BELOW(0.6875, p, 2), BELOW(0.6875, high, 0x1.dac670561bb4fp-2);
  BELOW(0.6875, low, 0x1.a2b7f222f65e2p-56);
  BELOW(0.4375, p, 1), BELOW(0.4375, q, 0), BELOW(0.4375, high, 0), BELOW(0.4375, low, 0);
#undef BELOW
  double t = (x * p - q) / (p + x * q), z = t * t, z2 = z * z;
  double a = -0x1.5555555555555p-2 + z * 0x1.99999999998c5p-3;
  double b = -0x1.2492492485503p-3 + z * 0x1.c71c71bd2b8bcp-4;
  double c = -0x1.745d154c84f7ap-4 + z * 0x1.3b1375ce5bdc6p-4;
  double d = -0x1.110c9ce7b0572p-4 + z * 0x1.e170800a46210p-5;
  double e = -0x1.ab59b417b2d3fp-5 + z * 0x1.7001816fd063fp-5;
  double f = -0x1.0f62bba6a2558p-5 + z * 0x1.e4167464d3de8p-7;
  double rest = t * z * ((a + z2 * b) + z2 * z2 * ((c + z2 * d) + z2 * z2 * (e + z2 * f)));
  return copysign(high + (t + (rest + low)), given);
}

#endif
