/* A plan: the steps of a tape for one set of input sizes, with their workspace.
 *
 * One call at a time uses a plan, so steps hold the addresses that they read and write. */
#ifndef PLAN_H
#define PLAN_H

#include "tape.h"
#ifdef __wasm__
#include "wasm.h"
#endif

enum { BLOCK_ELEMENTS = 512 };

typedef struct Step Step;
typedef struct Plan Plan;

/* Run a step; an error message, or NULL. */
typedef const char *(*Run)(Step *step);

struct Step {
  Run run;
  Step *next;
  char *out;
  const char *in[4];
  int64_t n[8]; /* sizes and settings */
  void *extra;
};

typedef struct {
  Step *first, **end;
} Steps;

/* An elementwise operation on a part of arrays. */
typedef struct Element Element;
typedef void (*ElementRun)(const Element *element, int64_t start, int64_t count);
struct Element {
  ElementRun run;
  int op;
  int numbers; /* a bit for each operand that is one number beside arrays */
  char *at[4];     /* the result and the operands */
  int64_t step[4]; /* bytes from one element to the next; 0 within a block */
  void *extra;
  int64_t value[4];
};

/* Return the address of an operand or the result from an element on. */
static inline char *part_at(const Element *element, int i, int64_t start) {
#ifdef __wasm__
  return (void)start, element->at[i]; /* `run_blocks` moves the addresses, for all kernels at once. */
#else
  return element->at[i] + start * element->step[i];
#endif
}

/* Elementwise instructions that run together, block by block. */
typedef struct {
  Element *elements;
  int count, capacity;
  int64_t size;
  int64_t begin, end; /* times of its step */
} Group;

/* How elements of an array of another shape are found. */
typedef struct {
  int rank;
  int64_t shape[MOST_AXES], stride[MOST_AXES]; /* in bytes */
} Layout;

typedef enum { NOWHERE, INPUT, OUTPUT, FIXED, WORK } Place;

/* A value of the tape in a plan. */
typedef struct {
  Array array;
  Place place; /* of a root */
  int known; /* whether the data is known when the plan is made */
  int index; /* of an input or output */
  int root;  /* the value in whose memory this one lies, from an offset on */
  int is_local; /* whether one block of it is kept at a time */
  int output;   /* index of the output of the region, -1 for others */
  int length;   /* the value that counts the rows that a run has written, -1 where all are */
  int expected; /* a value that has the same sizes, where they are known before its instruction is
                   planned; -1 for others */
  int uses, group_uses;
  int waiting, maker; /* while chains are made: uses to come, and the number of the element */
  int64_t offset;      /* in the root */
  int64_t first, last; /* time of the first and the last use of the memory */
  int64_t bytes, position; /* in the workspace */
} Slot;

/* Emit the steps of an instruction; `refuse` where the tape cannot run for the sizes. */
typedef void Planner(Plan *plan, const Instruction *instruction);

/* The kernels of an elementwise operator for a type, by which operands are arrays; `one` is for a
 * result of one element. In WebAssembly one kernel is for all of them. */
typedef struct {
  ElementRun vectors;
#ifndef __wasm__
  ElementRun left_number, right_number, one;
#endif
} ElementKernel;

typedef enum { ELEMENTWISE, STEPS, VIEW, CONTROL } OperatorKind;

/* The types are a letter for each operand, `>` and a letter for each result: T for one type, F if it
 * is one of floats, I for int64, i for int32 too, B for bool, * for any; operands after ? may be left
 * out, and + repeats the letter before it. */
typedef struct Operator {
  const char *name;
  unsigned char kind; /* an OperatorKind; a view has no steps unless its result is known */
  unsigned char attributes; /* the fewest */
  Planner *plan; /* of operators that are not elementwise */
  const char *types;
} Operator;

/* Elementwise operators first. */
extern const Operator OPERATORS[];
extern const int OPERATOR_COUNT;

/* Return the type of the result of an operator, 0 where `Operator.types` says it. */
int result_dtype(const Operator *op);

/* What a plan relies on beside the sizes of an input: nothing, the memory, or the elements. */
enum { SIZES_ONLY, SAME_MEMORY, SAME_ELEMENTS };

/* Make a plan of a block for inputs; NULL with a message if it cannot run for them. `bases` says
 * what it relies on for each, and `results` has the sizes of the outputs where they are known. */
Plan *make_plan(const Tape *tape, const Block *block, const Array *inputs, const char *bases,
                const Array *results, const char **problem);
void free_plan(Plan *plan);
size_t plan_bytes(const Plan *plan);
int plan_fits(const Plan *plan, const Array *inputs);
const Array *plan_output(const Plan *plan, int i);
const char *run_plan(Plan *plan, const Array *inputs, void *const *outputs);

#ifndef __wasm__
typedef int64_t Clock(void); /* nanoseconds */
/* Run a plan, and lower the time of each step to that of this run. */
const char *time_plan(Plan *plan, const Array *inputs, void *const *outputs, Clock *clock,
                      int64_t *times);
int step_count(const Plan *plan);
/* The index of the first step of each instruction, which others of one loop over elements share; -1
 * for instructions without steps. */
const int *first_steps(const Plan *plan);
/* Number of the plans that the last runs have made on the way. */
int late_plan_count(const Plan *plan);
#endif

/* Iterations of the present loop of a run in parts; no total between loops. */
typedef struct {
  int64_t done, total;
} Progress;

/* Run a plan part by part: begin it, and go on, each time by a step or by an iteration of a loop,
 * until it has no more; then end it. */
const char *begin_plan(Plan *plan, const Array *inputs, void *const *outputs);
void end_plan(Plan *plan);
const char *go_on(Plan *plan);
int has_more(const Plan *plan);
Progress progress_of(const Plan *plan);
/* Compute the outputs as if the present loop had ended: missing rows are NaN, or zero. Between loops
 * it does nothing. */
const char *peek(Plan *plan);

/* Plans that are made in the course of a run. */
typedef struct Late Late;
void free_late(Late *late);
int plans_of(const Late *late);

/* For planners. */
#ifdef __wasm__
static inline _Noreturn void refuse(Plan *plan, const char *problem) { (void)plan, stop(problem); }
#else
_Noreturn void refuse(Plan *plan, const char *problem);
#endif
const Tape *tape_of(const Plan *plan);
Slot *slot(Plan *plan, int64_t value);
Array *operand(Plan *plan, const Instruction *instruction, int i);
int has_operand(const Instruction *instruction, int i);
/* Refuse a value whose number of rows depends on values. */
void require_all_rows(Plan *plan, int64_t value);
void *memory(Plan *plan, size_t bytes);
void *scratch(Plan *plan, size_t bytes); /* memory until the plan is made */
Late **lates_of(Plan *plan);
int64_t new_value(Plan *plan, int dtype, int rank, const int64_t *shape);
void set_shape(Plan *plan, int64_t value, int rank, const int64_t *shape);
Step *emit(Plan *plan, Run run);
void reads(Plan *plan, const char **where, int64_t value, int64_t offset);
void writes(Plan *plan, char **where, int64_t value, int64_t offset);
void shares(Plan *plan, int64_t value, int64_t other, int64_t offset);
/* Make a value known, and return its data to be set. */
void *fix(Plan *plan, int64_t value);
/* Return the number of integers of a value that must be known. */
int known_integers(Plan *plan, int64_t value, int64_t *integers, int most);
/* Return the one integer of a value that must be known. */
int64_t known_integer(Plan *plan, int64_t value);
/* Refuse an operand that is no single element. */
void require_one(Plan *plan, int64_t value);
void copies(Plan *plan, int64_t out, int64_t in);
/* Emit the steps that follow into other steps; returns those until then. */
Steps *into(Plan *plan, Steps *steps);
/* Plan a block into steps of its own, or into the present ones without. */
void plan_block(Plan *plan, const Block *block, Steps *steps);
/* Run a step, or an iteration of a loop. */
const char *run_part(Step *step, Progress *progress);
/* Emit a step that plans and runs some instructions of a block when the values are known that
 * decide their sizes. */
void plan_late(Plan *plan, const Block *block, Instruction *instructions, int count);
int64_t begin_loop(Plan *plan);
void end_loop(Plan *plan, int64_t begin);
void touch(Plan *plan, int64_t value, int64_t time);
const char *run_steps(Step *step);
/* Whether an instruction sums all elements of an array of a size; sets the shape of the result. */
int sums_all(Plan *plan, const Instruction *instruction, int64_t size);
int takes_squares(const Instruction *instruction);
/* Emit the step that adds the parts of a sum. */
void adds_parts(Plan *plan, int64_t out, int64_t parts);
/* Return the number of elements that an instruction takes from a vector at known places, 0 for
 * other instructions. */
int64_t taken_elements(Plan *plan, const Instruction *instruction);
/* Return the offsets of these elements, and set the shape of the result. */
const int64_t *take_elements(Plan *plan, const Instruction *instruction);
void run_taken(const Element *element, int64_t start, int64_t count);
void broadcast_shape(Plan *plan, const Instruction *instruction, Array *result);

/* Arrays. */
Layout layout_of(int rank, const int64_t *shape, const int64_t *strides);
void strides_of(const Array *array, int64_t *strides);
void copy_layout(char *out, const char *in, const Layout *layout, size_t bytes, int64_t start,
                 int64_t count);
int same_shape(const Array *a, const Array *b);
const char *run_layout(Step *step);
void copies_layout(Plan *plan, int64_t out, int64_t out_offset, int64_t in, int64_t in_offset,
                   const Layout *layout, int64_t count);

#endif
