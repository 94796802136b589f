/* The interpreter of chains for one type T of floats; included for each type. */

#ifndef TARGET
#define TARGET
#endif

/* A unit is 8 registers of 32 bytes, or 16 of 16 bytes, which are the same numbers. */
#ifdef IS_WIDE
#define WIDTH 32
#define EACH(X) X(a0, 0) X(a1, 1) X(a2, 2) X(a3, 3) X(a4, 4) X(a5, 5) X(a6, 6) X(a7, 7)
#define ADD_TOTALS(to, kept) to[0] += TOTAL(kept, 0, 1, 2, 3, 4, 5, 6, 7);
#else
#define WIDTH 16
#define EACH(X)                                                                          \
  X(a0, 0) X(a1, 1) X(a2, 2) X(a3, 3) X(a4, 4) X(a5, 5) X(a6, 6) X(a7, 7)                \
  X(a8, 8) X(a9, 9) X(a10, 10) X(a11, 11) X(a12, 12) X(a13, 13) X(a14, 14) X(a15, 15)
#define ADD_TOTALS(to, kept)                     \
  to[0] += TOTAL(kept, 0, 2, 4, 6, 8, 10, 12, 14); \
  to[1] += TOTAL(kept, 1, 3, 5, 7, 9, 11, 13, 15);
#endif
#define TOTAL(kept, p, q, r, s, t, u, v, w)                  \
  (((a##p##kept + a##q##kept) + (a##r##kept + a##s##kept)) + \
   ((a##t##kept + a##u##kept) + (a##v##kept + a##w##kept)))

typedef T S(Vector) __attribute__((vector_size(WIDTH)));
typedef T S(Unaligned) __attribute__((vector_size(WIDTH), aligned(sizeof(T)), may_alias));
typedef BITS S(Bits) __attribute__((vector_size(WIDTH)));

typedef BITS S(UnalignedBits)
    __attribute__((vector_size(WIDTH), aligned(sizeof(T)), may_alias));

#define V S(Vector)
#define LANES (WIDTH / (int)sizeof(T))
#define UNIT (UNIT_BYTES / (int)sizeof(T))
#define LANES_OF_SUM (32 / (int)sizeof(T))
#define OPERAND(i) (*(const S(Unaligned) *)(at + WIDTH * (i)))

#define DECLARE(a, i) V a = neutral;
#define DO_LOAD(a, i) a = OPERAND(i);
#define DO_PLUS(a, i) a = a + OPERAND(i);
#define DO_MINUS(a, i) a = a - OPERAND(i);
#define DO_FROM(a, i) a = OPERAND(i) - a;
#define DO_TIMES(a, i) a = a * OPERAND(i);
#define DO_OVER(a, i) a = a / OPERAND(i);
#define DO_UNDER(a, i) a = OPERAND(i) / a;
#define DO_LOAD_NUMBER(a, i) a = number;
#define DO_PLUS_NUMBER(a, i) a = a + number;
#define DO_MINUS_NUMBER(a, i) a = a - number;
#define DO_FROM_NUMBER(a, i) a = number - a;
#define DO_TIMES_NUMBER(a, i) a = a * number;
#define DO_OVER_NUMBER(a, i) a = a / number;
#define DO_UNDER_NUMBER(a, i) a = number / a;
#define PRODUCT(i) (OPERAND(i) * *(const S(Unaligned) *)(factor + WIDTH * (i)))
#define DO_PLUS_PRODUCT(a, i) a = a + PRODUCT(i);
#define DO_MINUS_PRODUCT(a, i) a = a - PRODUCT(i);
#define DO_FROM_PRODUCT(a, i) a = PRODUCT(i) - a;
#define DO_PLUS_PRODUCT_NUMBER(a, i) a = a + OPERAND(i) * number;
#define DO_MINUS_PRODUCT_NUMBER(a, i) a = a - OPERAND(i) * number;
#define DO_FROM_PRODUCT_NUMBER(a, i) a = OPERAND(i) * number - a;
#define DO_LOAD_TAKEN(a, i) \
  for (int n = 0; n < LANES; n++) a[n] = *(const T *)(at + where[LANES * (i) + n]);
#define DO_SQUARED(a, i) a = a * a;
#define DO_NEGATED(a, i) a = -a;
#define DO_MAGNITUDE(a, i) a = (V)((S(Bits))a & ~(S(Bits))neutral);
#define DO_INVERTED(a, i) a = 1 / a;
#define DO_STORE(a, i) *(S(Unaligned) *)(at + WIDTH * (i)) = a;

#define TERM(a, i) const V a##_term = a;
#define TERM_OF_PRODUCT(a, i) const V a##_term = a * OPERAND(i);
#define TERM_OF_SQUARES(a, i) const V a##_term = a * a;
/* Elements that a sum has already count as negative zeros, which leave it as it is. */
#define IS_NEW(i) (*(const S(UnalignedBits) *)(S(IS_NEW) + UNIT - skipped + LANES * (i)))
#define NEW_OF(a, i) \
  const V a##_new = (V)(((S(Bits))a##_term & IS_NEW(i)) | ((S(Bits))neutral & ~IS_NEW(i)));
#define ADD_TERMS                                       \
  if (skipped) {                                        \
    EACH(NEW_OF)                                        \
    ADD_TOTALS(((S(Unaligned) *)link->at), _new)        \
  } else {                                              \
    ADD_TOTALS(((S(Unaligned) *)link->at), _term)       \
  }

/* Each operation jumps to the next one. */
#define NEXT              \
  {                       \
    link++;               \
    goto *link->operation; \
  }
#define ON_ARRAY(code)            \
  code: {                         \
    char *at = link->at + offset; \
    EACH(DO_##code)               \
    NEXT                          \
  }
#define ON_NUMBER(code)                        \
  code##_NUMBER: {                             \
    const V number = *(T *)link->at - (V){0};  \
    EACH(DO_##code##_NUMBER)                   \
    NEXT                                       \
  }
#define ON_PRODUCT(code)                      \
  code: {                                     \
    char *at = link->at + offset;             \
    const char *factor = link[1].at + offset; \
    EACH(DO_##code)                           \
    link++;                                   \
    NEXT                                      \
  }
#define ON_PRODUCT_OF_NUMBER(code)                      \
  code##_NUMBER: {                                      \
    char *at = link->at + offset;                       \
    const V number = *(const T *)link[1].at - (V){0};   \
    EACH(DO_##code##_NUMBER)                            \
    link++;                                             \
    NEXT                                                \
  }
#define ALONE(code)    \
  code: {              \
    EACH(DO_##code)    \
    NEXT               \
  }
#define WITH_OPERAND(X) X(LOAD) X(PLUS) X(MINUS) X(FROM) X(TIMES) X(OVER) X(UNDER)
#define WITH_PRODUCT(X) X(PLUS_PRODUCT) X(MINUS_PRODUCT) X(FROM_PRODUCT)
#define ADDRESS(code) [code] = &&code,
#define ADDRESS_OF_NUMBER(code) ADDRESS(code##_NUMBER)

static const BITS S(IS_NEW)[2 * UNIT] = {[UNIT ... 2 * UNIT - 1] = -1};

/* Add the lanes of a sum. */
static T S(total_of)(const Total *total) {
  T lanes[LANES_OF_SUM];
  memcpy(lanes, total->lanes, sizeof lanes);
  for (int width = LANES_OF_SUM / 2; width; width /= 2) {
    for (int i = 0; i < width; i++) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

static TARGET void S(run_chain)(const Element *element, int64_t start, int64_t count) {
  static const void *const OPERATIONS[] = {
      WITH_OPERAND(ADDRESS) WITH_OPERAND(ADDRESS_OF_NUMBER)
      WITH_PRODUCT(ADDRESS) WITH_PRODUCT(ADDRESS_OF_NUMBER)
      [LOAD_TAKEN] = &&LOAD_TAKEN, [SQUARED] = &&SQUARED, [NEGATED] = &&NEGATED, [MAGNITUDE] = &&MAGNITUDE,
      [INVERTED] = &&INVERTED, [SKIP_IF] = &&SKIP_IF, [SKIP_UNLESS] = &&SKIP_UNLESS,
      [STORE] = &&STORE, [ADD_UP] = &&ADD_UP, [ADD_UP_PRODUCT] = &&ADD_UP_PRODUCT,
      [ADD_UP_SQUARES] = &&ADD_UP_SQUARES, [END] = &&END,
  };
  Chain *chain = element->extra;
  for (int k = 0; !chain->is_ready && k < chain->length; k++) {
    chain->links[k].operation = OPERATIONS[chain->links[k].code];
  }
  chain->is_ready = 1;
  Link of_block[MOST_LINKS], *links = chain->links, *link;
  if (start) {
    memcpy(of_block, links, (size_t)chain->length * sizeof *links);
    links = of_block;
    for (int k = 0; k < chain->length; k++) {
      if (links[k].step) links[k].at += start * links[k].step;
    }
  }
  const V neutral = -(V){0};
  for (int k = 0; k < chain->total_count; k++) {
    T *lanes = (T *)chain->totals[k].lanes;
    for (int i = 0; i < LANES_OF_SUM; i++) lanes[i] = -(T)0;
  }
  EACH(DECLARE)
  int64_t i = 0, skipped = 0, offset;
begin:
  if (i + UNIT > count) {
    /* The last unit has the last elements of the one before it once more. */
    skipped = i + UNIT - count;
    i -= skipped;
  }
  offset = i * (int64_t)sizeof(T);
  link = links;
  goto *link->operation;
  WITH_OPERAND(ON_ARRAY)
  WITH_OPERAND(ON_NUMBER)
  WITH_PRODUCT(ON_PRODUCT)
  WITH_PRODUCT(ON_PRODUCT_OF_NUMBER)
LOAD_TAKEN: {
  const char *at = link->at;
  const int64_t *where = (const int64_t *)link[1].at + i;
  EACH(DO_LOAD_TAKEN)
  link++;
  NEXT
}
  ON_ARRAY(STORE)
  ALONE(SQUARED)
  ALONE(NEGATED)
  ALONE(MAGNITUDE)
  ALONE(INVERTED)
SKIP_IF:
  link += *(uint8_t *)link->at != 0;
  NEXT
SKIP_UNLESS:
  link += *(uint8_t *)link->at == 0;
  NEXT
ADD_UP: {
  EACH(TERM)
  ADD_TERMS
  NEXT
}
ADD_UP_PRODUCT: {
  const char *at = link[1].at + offset;
  EACH(TERM_OF_PRODUCT)
  ADD_TERMS
  link++;
  NEXT
}
ADD_UP_SQUARES: {
  EACH(TERM_OF_SQUARES)
  ADD_TERMS
  NEXT
}
END:
  i += UNIT;
  if (i < count) goto begin;
  for (int k = 0; k < chain->total_count; k++) {
    const Total *total = &chain->totals[k];
    ((T *)total->at)[block_index(start)] = S(total_of)(total);
  }
}

#undef T
#undef TARGET
#undef IS_WIDE
#undef WIDTH
#undef ADD_TOTALS
#undef LANES_OF_SUM
#undef DECLARE
#undef BITS
#undef S
#undef V
#undef LANES
#undef UNIT
#undef EACH
#undef OPERAND
#undef IS_NEW
#undef PRODUCT
#undef TERM
#undef TERM_OF_PRODUCT
#undef TERM_OF_SQUARES
#undef NEW_OF
#undef ADD_TERMS
#undef TOTAL
#undef NEXT
#undef ON_ARRAY
#undef ON_NUMBER
#undef ON_PRODUCT
#undef ON_PRODUCT_OF_NUMBER
#undef ALONE
#undef WITH_PRODUCT
#undef WITH_OPERAND
#undef ADDRESS
#undef ADDRESS_OF_NUMBER
