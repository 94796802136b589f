/* Make chains of the elementwise operations of a group, and run them. */
#include "chains.h"

enum { MOST_LINKS = 96, MOST_LINKS_OF_ONE = 7, MOST_COMPARED = 100 };

/* The module of WebAssembly has none: its registers are too few, as measured. */
#ifndef __wasm__

#define T double
#define BITS int64_t
#define S(name) name##_f64
#include "chains.inc"

#define T float
#define BITS int32_t
#define S(name) name##_f32
#include "chains.inc"

#ifdef WIDE
#define TARGET WIDE
#define IS_WIDE
#define T double
#define BITS int64_t
#define S(name) name##_f64_wide
#include "chains.inc"

#define TARGET WIDE
#define IS_WIDE
#define T float
#define BITS int32_t
#define S(name) name##_f32_wide
#include "chains.inc"
#endif

static ElementRun runner_of(int dtype) {
#ifdef WIDE
  if (has_wide_vectors()) return dtype == FLOAT64 ? run_chain_f64_wide : run_chain_f32_wide;
#endif
  return dtype == FLOAT64 ? run_chain_f64 : run_chain_f32;
}


/* The elements of a group in the course of their ordering. */
typedef struct {
  Plan *plan;
  int64_t size;
  const Element *given;
  int count;
  int *waits;      /* number of operands that are not computed yet, by element; -1 when done */
  int *first_user; /* of the result of an element, -1 at the end */
  int *next_user;  /* of an element's operand; three for each element */
  int *ready, ready_count;
  Element *made;
  int made_count;
  /* The chain in the making. */
  int dtype, length, elements, last;
  Link links[MOST_LINKS];
  int64_t totals[MOST_LINKS];
  int total_count;
  int64_t held; /* the value in the registers, -1 without one */
  int is_stored;
} Weaver;

static int is_sum(const Element *element) {
  return element->op == SUM || element->op == SUM_OF_SQUARES;
}

static int is_array(Weaver *weaver, int64_t value) {
  return slot(weaver->plan, value)->array.size > 1;
}

/* Return the type of the chains that an element may be in, 0 if it may be in none. */
static int chain_dtype(Weaver *weaver, const Element *element) {
  int dtype = slot(weaver->plan, element->value[is_sum(element)])->array.dtype;
  if (!can_chain(dtype, weaver->size)) return 0;
  switch (element->op) {
    case ELEMENTWISE_Add: case ELEMENTWISE_Sub: case ELEMENTWISE_Mul: case ELEMENTWISE_Div:
    case ELEMENTWISE_Neg: case ELEMENTWISE_Abs: case ELEMENTWISE_Reciprocal:
    case SUM: case SUM_OF_SQUARES: case TAKEN:
      return dtype;
    case ELEMENTWISE_Where: return is_array(weaver, element->value[1]) ? 0 : dtype;
    default: return 0;
  }
}

static int operand_count(const Element *element) {
  int count = 0;
  while (count < 3 && element->value[count + 1] >= 0) count++;
  return element->op == BROADCAST || element->op == TAKEN ? 1 : count;
}

static Weaver *weaver_of(Plan *plan, const Group *group) {
  Weaver *made = scratch(plan, sizeof *made);
  size_t count = (size_t)group->count + 1;
  *made = (Weaver){.plan = plan, .size = group->size, .count = group->count, .held = -1};
  made->given = group->elements;
  made->waits = scratch(plan, count * sizeof(int));
  made->first_user = scratch(plan, count * sizeof(int));
  made->next_user = scratch(plan, 3 * count * sizeof(int));
  made->ready = scratch(plan, count * sizeof(int));
  made->made = memory(plan, count * sizeof(Element));
  for (int i = 0; i < made->count; i++) {
    const Element *element = &made->given[i];
    made->first_user[i] = -1;
    for (int k = 0; k < operand_count(element); k++) {
      Slot *from = slot(plan, element->value[k + 1]);
      int maker = slot(plan, from->root)->maker - 1;
      from->waiting++;
      if (maker < 0) continue;
      made->waits[i]++;
      made->next_user[3 * i + k] = made->first_user[maker];
      made->first_user[maker] = 3 * i + k;
    }
    if (!is_sum(element)) slot(plan, element->value[0])->maker = i + 1;
    if (!made->waits[i]) made->ready[made->ready_count++] = i;
  }
  return made;
}

/* Chains. */

static void link(Weaver *weaver, LinkCode code, int64_t value) {
  weaver->links[weaver->length++] = (Link){.code = code, .value = value};
}

static void link_operand(Weaver *weaver, LinkCode code, int64_t value) {
  link(weaver, is_array(weaver, value) ? code : code + (LOAD_NUMBER - LOAD), value);
}

static int is_needed(Weaver *weaver, int64_t value) {
  const Slot *given = slot(weaver->plan, value);
  return given->waiting || given->uses > given->group_uses || given->output >= 0;
}

/* Keep the value in the registers in memory. */
static void keep(Weaver *weaver) {
  if (weaver->held >= 0 && !weaver->is_stored) link(weaver, STORE, weaver->held);
  weaver->is_stored = 1;
}

/* Keep what is in the registers, if it is needed, before they have another value. */
static void leave(Weaver *weaver) {
  if (weaver->held >= 0 && is_needed(weaver, weaver->held)) keep(weaver);
}

static void load(Weaver *weaver, int64_t value) {
  leave(weaver);
  link_operand(weaver, LOAD, value);
  weaver->held = value;
  weaver->is_stored = 1;
}

static void link_binary(Weaver *weaver, const Element *element, LinkCode code, LinkCode reversed) {
  int64_t left = element->value[1], right = element->value[2];
  if (weaver->held != left && weaver->held != right) {
    load(weaver, is_array(weaver, left) ? left : right);
  }
  int is_twice = left == right;
  if (is_needed(weaver, weaver->held) || (is_twice && code != TIMES)) keep(weaver);
  if (is_twice && code == TIMES) link(weaver, SQUARED, -1);
  else if (weaver->held == left) link_operand(weaver, code, right);
  else link_operand(weaver, reversed, left);
}

static void link_unary(Weaver *weaver, const Element *element, LinkCode code) {
  if (weaver->held != element->value[1]) load(weaver, element->value[1]);
  if (is_needed(weaver, weaver->held)) keep(weaver);
  link(weaver, code, -1);
}

static void link_where(Weaver *weaver, const Element *element) {
  int64_t left = element->value[2], right = element->value[3];
  if (weaver->held != left && weaver->held != right) load(weaver, left);
  if (is_needed(weaver, weaver->held) || left == right) keep(weaver);
  link(weaver, weaver->held == left ? SKIP_IF : SKIP_UNLESS, element->value[1]);
  link_operand(weaver, LOAD, weaver->held == left ? right : left);
}

static void link_taken(Weaver *weaver, const Element *element) {
  leave(weaver);
  link(weaver, LOAD_TAKEN, element->value[1]);
  link(weaver, OFFSETS, -1);
  Link *offsets = &weaver->links[weaver->length - 1];
  offsets->at = element->extra;
  offsets->step = (int64_t)sizeof(int64_t);
}

static void link_total(Weaver *weaver, LinkCode code, int64_t value) {
  link(weaver, code, -1);
  weaver->totals[weaver->total_count++] = value;
}

static void link_sum(Weaver *weaver, const Element *element) {
  if (weaver->held != element->value[1]) load(weaver, element->value[1]);
  link_total(weaver, element->op == SUM ? ADD_UP : ADD_UP_SQUARES, element->value[0]);
}

static void uses_operands(Weaver *weaver, const Element *element) {
  for (int k = 0; k < operand_count(element); k++) {
    slot(weaver->plan, element->value[k + 1])->waiting--;
  }
}

/* Add a product of arrays to a sum; what is in the registers stays there. */
static void link_sum_of_product(Weaver *weaver, const Element *product, const Element *sum) {
  Plan *plan = weaver->plan;
  int64_t left = product->value[1], right = product->value[2];
  uses_operands(weaver, product);
  if (weaver->held != left && weaver->held != right) load(weaver, left);
  int64_t factor = weaver->held == left ? right : left;
  /* A view of what is in the registers is read from memory. */
  int is_view = slot(plan, factor)->root == slot(plan, weaver->held)->root;
  if (factor != weaver->held && is_view) keep(weaver);
  link_total(weaver, left == right ? ADD_UP_SQUARES : ADD_UP_PRODUCT, sum->value[0]);
  if (left != right) link(weaver, FACTOR, factor);
}

/* Add a product to what is in the registers, or subtract it. */
static void link_product(Weaver *weaver, const Element *product, const Element *element) {
  int64_t left = product->value[1], right = product->value[2];
  uses_operands(weaver, product);
  uses_operands(weaver, element);
  if (is_needed(weaver, weaver->held)) keep(weaver);
  int is_first = element->value[1] == weaver->held;
  LinkCode code = element->op == ELEMENTWISE_Add ? PLUS_PRODUCT
                  : is_first                     ? MINUS_PRODUCT
                                                 : FROM_PRODUCT;
  int is_number = !is_array(weaver, left) || !is_array(weaver, right);
  link(weaver, is_number ? code + (PLUS_PRODUCT_NUMBER - PLUS_PRODUCT) : code,
       is_array(weaver, left) ? left : right);
  link(weaver, FACTOR, is_array(weaver, left) ? right : left);
  weaver->held = element->value[0];
  weaver->is_stored = 0;
}

static void link_element(Weaver *weaver, const Element *element) {
  uses_operands(weaver, element);
  switch (element->op) {
    case ELEMENTWISE_Add: link_binary(weaver, element, PLUS, PLUS); break;
    case ELEMENTWISE_Sub: link_binary(weaver, element, MINUS, FROM); break;
    case ELEMENTWISE_Mul: link_binary(weaver, element, TIMES, TIMES); break;
    case ELEMENTWISE_Div: link_binary(weaver, element, OVER, UNDER); break;
    case ELEMENTWISE_Neg: link_unary(weaver, element, NEGATED); break;
    case ELEMENTWISE_Abs: link_unary(weaver, element, MAGNITUDE); break;
    case ELEMENTWISE_Reciprocal: link_unary(weaver, element, INVERTED); break;
    case ELEMENTWISE_Where: link_where(weaver, element); break;
    case TAKEN: link_taken(weaver, element); break;
    default: link_sum(weaver, element); return;
  }
  weaver->held = element->value[0];
  weaver->is_stored = 0;
}

static Chain *chain_of(Weaver *weaver) {
  Plan *plan = weaver->plan;
  Chain *made = memory(plan, sizeof *made);
  made->length = weaver->length;
  made->links = memory(plan, (size_t)made->length * sizeof *made->links);
  memcpy(made->links, weaver->links, (size_t)made->length * sizeof *made->links);
  made->totals = memory(plan, (size_t)weaver->total_count * sizeof *made->totals);
  for (int k = 0; k < made->length; k++) {
    if (!adds_up(made->links[k].code)) continue;
    Total *total = &made->totals[made->total_count];
    total->value = weaver->totals[made->total_count++];
    made->links[k].at = total->lanes;
  }
  return made;
}

/* Add the chain, or the one element of it, to those in order. */
static void end_chain(Weaver *weaver) {
  if (!weaver->elements) return;
  const Element *last = &weaver->given[weaver->last];
  Element *made = &weaver->made[weaver->made_count++];
  if (weaver->elements == 1 && !is_sum(last)) {
    *made = *last;
  } else {
    leave(weaver);
    link(weaver, END, -1);
    *made = (Element){.run = runner_of(weaver->dtype), .op = CHAIN, .extra = chain_of(weaver)};
  }
  weaver->held = -1;
  weaver->elements = weaver->length = weaver->total_count = 0;
}

/* Order. */

static void mark_done(Weaver *weaver, int i) {
  weaver->waits[i] = -1;
  for (int edge = weaver->first_user[i]; edge >= 0; edge = weaver->next_user[edge]) {
    if (!--weaver->waits[edge / 3]) weaver->ready[weaver->ready_count++] = edge / 3;
  }
}

static void take(Weaver *weaver, int i) {
  int position = --weaver->ready_count;
  while (weaver->ready[position] != i) position--;
  memmove(weaver->ready + position, weaver->ready + position + 1,
          (size_t)(weaver->ready_count - position) * sizeof(int));
}

static int has_held(Weaver *weaver, const Element *element) {
  for (int k = 0; weaver->held >= 0 && k < operand_count(element); k++) {
    if (element->value[k + 1] == weaver->held) return 1;
  }
  return 0;
}

/* Return the element that alone uses a product, which need not be stored then; -1 without one. */
static int only_user(Weaver *weaver, int i) {
  const Slot *given = slot(weaver->plan, weaver->given[i].value[0]);
  int is_product = weaver->given[i].op == ELEMENTWISE_Mul && given->output < 0;
  return is_product && given->uses == 1 && given->group_uses == 1 ? weaver->first_user[i] / 3 : -1;
}

/* What comes next in a chain, from the least to the most wanted. */
typedef enum {
  NOT_POSSIBLE,
  LATER_PRODUCT, /* which is to be added to an array that is not computed yet */
  ANY,
  SUM_OF_PRODUCT,
  ON_HELD,
  PRODUCT_ON_HELD,
  SUM_OF_PRODUCT_OF_HELD,
  SUM_OF_HELD
} Rank;

static Rank rank_of_product(Weaver *weaver, const Element *product, int user) {
  const Element *element = &weaver->given[user];
  int with_held = has_held(weaver, product);
  int is_of_arrays = is_array(weaver, product->value[1]) && is_array(weaver, product->value[2]);
  if (element->op == SUM && is_of_arrays) return with_held ? SUM_OF_PRODUCT_OF_HELD : SUM_OF_PRODUCT;
  if (with_held || (element->op != ELEMENTWISE_Add && element->op != ELEMENTWISE_Sub)) return ANY;
  if (weaver->waits[user] > 1) return LATER_PRODUCT;
  return has_held(weaver, element) ? PRODUCT_ON_HELD : ANY;
}

static Rank rank_of(Weaver *weaver, int i) {
  const Element *element = &weaver->given[i];
  int dtype = chain_dtype(weaver, element), user = only_user(weaver, i);
  if (!dtype || (weaver->elements && dtype != weaver->dtype)) return NOT_POSSIBLE;
  Rank rank = user >= 0 ? rank_of_product(weaver, element, user) : ANY;
  if (rank != ANY || !has_held(weaver, element)) return rank;
  return is_sum(element) ? SUM_OF_HELD : ON_HELD;
}

/* Return the next element of the chain, among those that were ready last, and its rank; -1 without
 * any. */
static int choose(Weaver *weaver, Rank *best) {
  int found = -1, count = weaver->ready_count;
  *best = NOT_POSSIBLE;
  for (int k = count - 1; k >= 0 && k >= count - MOST_COMPARED; k--) {
    Rank rank = rank_of(weaver, weaver->ready[k]);
    if (rank > *best) found = weaver->ready[k], *best = rank;
  }
  return found;
}

static void enter(Weaver *weaver, int i) {
  take(weaver, i);
  weaver->elements++;
  weaver->last = i;
}

static int add_to_chain(Weaver *weaver) {
  if (weaver->length > MOST_LINKS - MOST_LINKS_OF_ONE) end_chain(weaver);
  Rank rank;
  int i = choose(weaver, &rank), user = i < 0 ? -1 : only_user(weaver, i);
  if (i < 0) return 0;
  const Element *element = &weaver->given[i];
  enter(weaver, i);
  weaver->dtype = chain_dtype(weaver, element);
  if (rank != PRODUCT_ON_HELD && rank != SUM_OF_PRODUCT && rank != SUM_OF_PRODUCT_OF_HELD) {
    link_element(weaver, element);
    mark_done(weaver, i);
    return 1;
  }
  mark_done(weaver, i);
  enter(weaver, user);
  if (rank == PRODUCT_ON_HELD) link_product(weaver, element, &weaver->given[user]);
  else link_sum_of_product(weaver, element, &weaver->given[user]);
  mark_done(weaver, user);
  return 1;
}

/* Put the elements that are ready and can be in no chain in the group. */
static void add_others(Weaver *weaver) {
  for (int k = 0; k < weaver->ready_count;) {
    const Element *element = &weaver->given[weaver->ready[k]];
    if (chain_dtype(weaver, element)) {
      k++;
      continue;
    }
    int i = weaver->ready[k];
    take(weaver, i);
    uses_operands(weaver, element);
    weaver->made[weaver->made_count++] = *element;
    mark_done(weaver, i);
  }
}
static Element *chains_of(Plan *plan, const Group *group, int *count) {
  Weaver *weaver = weaver_of(plan, group);
  while (weaver->ready_count) {
    add_others(weaver);
    while (add_to_chain(weaver)) {
    }
    end_chain(weaver);
  }
  for (int i = 0; i < weaver->count; i++) {
    if (!is_sum(&weaver->given[i])) slot(plan, weaver->given[i].value[0])->maker = 0;
  }
  *count = weaver->made_count;
  return weaver->made;
}
#endif

Element *make_chains(Plan *plan, const Group *group, int *count) {
  *count = group->count;
#ifndef __wasm__
  int is_short = group->size * (int64_t)sizeof(double) < UNIT_BYTES;
  if (!is_short && (*count > 1 || is_sum(group->elements))) return chains_of(plan, group, count);
#endif
  Element *made = memory(plan, (size_t)*count * sizeof *made);
  return memcpy(made, group->elements, (size_t)*count * sizeof *made);
}
