/* The largest or smallest elements along an axis, in order, with their places. */
#include "planners.h"

/* n: outer, length, inner, number of elements to find, whether the largest */
enum { OUTER, LENGTH, INNER, COUNT, IS_LARGEST };

/* Sort places by their elements, equal ones by place: runs of 1, 2, 4, … are merged. */
#define RUN_TOP(name, T)                                                                       \
  static int64_t *sorted_##name(const T *row, int64_t inner, int64_t n, int is_largest,        \
                                int64_t *places, int64_t *others) {                            \
    for (int64_t i = 0; i < n; i++) places[i] = i;                                             \
    for (int64_t width = 1; width < n; width *= 2) {                                           \
      for (int64_t begin = 0; begin < n; begin += 2 * width) {                                 \
        int64_t middle = between(begin + width, 0, n), end = between(begin + 2 * width, 0, n); \
        int64_t left = begin, right = middle;                                                  \
        for (int64_t to = begin; to < end; to++) {                                             \
          int takes_right = left == middle;                                                    \
          if (left < middle && right < end) {                                                  \
            T x = row[places[left] * inner], y = row[places[right] * inner];                   \
            takes_right = is_largest ? y > x : y < x;                                          \
          }                                                                                    \
          others[to] = takes_right ? places[right++] : places[left++];                         \
        }                                                                                      \
      }                                                                                        \
      int64_t *last = places;                                                                  \
      places = others, others = last;                                                          \
    }                                                                                          \
    return places;                                                                             \
  }                                                                                            \
  static const char *run_top_##name(Step *step) {                                              \
    const int64_t *n = step->n;                                                                \
    int64_t *scratch = (int64_t *)step->in[2];                                                 \
    for (int64_t k = 0; k < n[OUTER] * n[INNER]; k++) {                                        \
      int64_t outer = k / n[INNER], inner = k % n[INNER];                                      \
      const T *row = (const T *)step->in[0] + outer * n[LENGTH] * n[INNER] + inner;            \
      int64_t first = outer * n[COUNT] * n[INNER] + inner;                                     \
      const int64_t *places = sorted_##name(row, n[INNER], n[LENGTH], n[IS_LARGEST] != 0,      \
                                            scratch, scratch + n[LENGTH]);                     \
      for (int64_t i = 0; i < n[COUNT]; i++) {                                                 \
        ((T *)step->out)[first + i * n[INNER]] = row[places[i] * n[INNER]];                    \
        ((int64_t *)step->in[1])[first + i * n[INNER]] = places[i];                            \
      }                                                                                        \
    }                                                                                          \
    return NULL;                                                                               \
  }
RUN_TOP(f64, double)
RUN_TOP(f32, float)
RUN_TOP(i64, int64_t)
RUN_TOP(i32, int32_t)

/* attributes: axis, whether the largest */
void plan_top_k(Plan *plan, const Instruction *instruction) {
  Array given = *operand(plan, instruction, 0);
  int64_t axis = axis_of(plan, instruction->attribute[0], given.rank);
  int64_t length = given.shape[axis], count = known_integer(plan, instruction->in[1]);
  if (count < 0 || count > length) {
    refuse(plan, "a TopK of more elements than there are");
  }
  int64_t n[] = {product(given.shape, 0, axis), length, product(given.shape, axis + 1, given.rank),
                 count, instruction->attribute[1]};
  given.shape[axis] = count;
  for (int i = 0; i < 2; i++) set_shape(plan, instruction->out[i], given.rank, given.shape);
  Run run = given.dtype == FLOAT64 ? run_top_f64 : given.dtype == FLOAT32 ? run_top_f32
          : given.dtype == INT64 ? run_top_i64 : given.dtype == INT32 ? run_top_i32 : NULL;
  if (!run) refuse(plan, "a TopK without kernel");
  Step *step = emit(plan, run);
  int64_t twice = 2 * length;
  reads(plan, &step->in[0], instruction->in[0], 0);
  writes(plan, &step->out, instruction->out[0], 0);
  writes(plan, (char **)&step->in[1], instruction->out[1], 0);
  writes(plan, (char **)&step->in[2], new_value(plan, INT64, 1, &twice), 0);
  memcpy(step->n, n, sizeof n);
}
