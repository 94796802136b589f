/* Scheduling: the instructions of a block in an order in which groups are large. */
#include "planning.h"

const char *run_steps(Step *step) {
  for (; step; step = step->next) {
    const char *problem = step->run(step);
    if (problem) return problem;
  }
  return NULL;
}

static int is_known(Plan *plan, const Instruction *instruction) {
  for (int i = 0; i < instruction->inputs; i++) {
    if (instruction->in[i] >= 0 && !plan->slots[instruction->in[i]].known) return 0;
  }
  return 1;
}

/* Plan an instruction of known operands and run its steps now. */
static void fold(Plan *plan, const Instruction *instruction) {
  Steps steps = {NULL, NULL}, *outer = plan->steps;
  steps.end = &steps.first;
  plan->steps = &steps;
  plan->folds = 1;
  if (instruction->op->kind == ELEMENTWISE) {
    plan->folded.size = plan->slots[instruction->out[0]].array.size;
    append(plan, &plan->folded, instruction);
    close_group(plan, &plan->folded);
  } else {
    instruction->op->plan(plan, instruction);
  }
  const char *problem = run_steps(steps.first);
  plan->folds = 0;
  plan->steps = outer;
  if (problem) refuse(plan, problem);
}

/* Whether an instruction waits for values that decide sizes. */
static int is_late(Plan *plan, const Instruction *instruction) {
  for (int i = 0; i < instruction->inputs; i++) {
    if (instruction->in[i] < 0) continue;
    const Slot *given = &plan->slots[instruction->in[i]];
    int decides_sizes = i < 63 && instruction->sizes >> i & 1;
    if (given->length >= 0 || (decides_sizes && !given->known)) return 1;
  }
  return 0;
}

enum { READY = -1, DONE = -2 };

/* The instructions of a block in the course of planning. */
typedef struct {
  const Block *block;
  int *waits;       /* number of operands that are not planned, by instruction, then READY, DONE */
  int *first_edge;  /* of the users of an instruction, -1 at the end */
  int *edge_next, *edge_user;
  int *edges; /* room for `mark_done` */
  int *ready, ready_count;
  int *sums, sum_count; /* instructions whose results the group has at its end */
  int64_t *parts;       /* values of these sums by block */
} Schedule;

static Schedule schedule_of(Plan *plan, const Block *block) {
  int edges = 0, values = plan->tape->values;
  for (int i = 0; i < block->count; i++) edges += block->instructions[i].inputs;
  Schedule made = {.block = block};
  size_t count = (size_t)block->count + 1;
  made.waits = scratch(plan, count * sizeof(int));
  made.first_edge = scratch(plan, count * sizeof(int));
  made.edges = scratch(plan, count * sizeof(int));
  made.ready = scratch(plan, count * sizeof(int));
  made.sums = scratch(plan, count * sizeof(int));
  made.parts = scratch(plan, count * sizeof(int64_t));
  made.edge_next = scratch(plan, (size_t)(edges + 1) * sizeof(int));
  made.edge_user = scratch(plan, (size_t)(edges + 1) * sizeof(int));
  int *maker = scratch(plan, (size_t)(values + 1) * sizeof(int)); /* index + 1 */
  for (int i = 0; i < block->count; i++) {
    made.first_edge[i] = -1;
    const Instruction *instruction = &block->instructions[i];
    for (int k = 0; k < instruction->outputs; k++) maker[instruction->out[k]] = i + 1;
  }
  for (int i = 0, edge = 0; i < block->count; i++) {
    const Instruction *instruction = &block->instructions[i];
    for (int k = 0; k < instruction->inputs; k++) {
      int64_t value = instruction->in[k];
      int from = value >= 0 ? maker[value] - 1 : -1;
      if (from < 0) continue;
      made.waits[i]++;
      made.edge_user[edge] = i;
      made.edge_next[edge] = made.first_edge[from];
      made.first_edge[from] = edge++;
    }
  }
  return made;
}

/* Put an instruction whose operands are planned in line, or plan it at once if it has no steps;
 * return whether it is planned. */
static int starts(Plan *plan, Schedule *schedule, int i) {
  const Instruction *instruction = &schedule->block->instructions[i];
  const Operator *op = instruction->op;
  schedule->waits[i] = READY;
  if (is_late(plan, instruction)) return 0;
  if (op->kind == ELEMENTWISE) {
    Array result;
    broadcast_shape(plan, instruction, &result);
    set_shape(plan, instruction->out[0], result.rank, result.shape);
  }
  if (op->kind == VIEW) op->plan(plan, instruction);
  else if (op->kind < IF && is_known(plan, instruction)) fold(plan, instruction);
  else return schedule->ready[schedule->ready_count++] = i, 0;
  return 1;
}

/* Note that an instruction is planned, and start the users that have waited for it, depth first. */
static void mark_done(Plan *plan, Schedule *schedule, int i) {
  int *edges = schedule->edges, depth = 0; /* the next edge of each instruction that is done */
  schedule->waits[i] = DONE;
  edges[0] = schedule->first_edge[i];
  while (depth >= 0) {
    int edge = edges[depth];
    if (edge < 0) {
      depth--;
      continue;
    }
    edges[depth] = schedule->edge_next[edge];
    int user = schedule->edge_user[edge];
    if (--schedule->waits[user] || !starts(plan, schedule, user)) continue;
    schedule->waits[user] = DONE;
    edges[++depth] = schedule->first_edge[user];
  }
}

static int take(Schedule *schedule, int position) {
  int found = schedule->ready[position];
  schedule->ready_count--;
  memmove(schedule->ready + position, schedule->ready + position + 1,
          (size_t)(schedule->ready_count - position) * sizeof(int));
  return found;
}

/* Return how an instruction that is not elementwise can run in a group, NULL where it cannot. */
static const Member *member_of(const Instruction *instruction) {
#ifdef __wasm__
  return (void)instruction, NULL;
#else
  return instruction->op->member;
#endif
}

/* Return the size of the group that an instruction can be in, -1 if it has steps of its own. */
static int64_t group_size(Plan *plan, const Instruction *instruction) {
  if (instruction->op->kind == ELEMENTWISE) return plan->slots[instruction->out[0]].array.size;
  const Member *member = member_of(instruction);
  if (!member || !member->offsets || !member->fits(plan, instruction)) return -1;
  /* The vector must be complete before the group. */
  if (root_of(plan, instruction->in[0])->place == NOWHERE) return -1;
  return operand(plan, instruction, 1)->size;
}

/* Whether an instruction sums all elements of an array of the group. */
static int sums_all(Plan *plan, const Instruction *instruction) {
  const Member *member = member_of(instruction);
  if (!member || !member->add_parts) return 0;
  return operand(plan, instruction, 0)->size == plan->group.size && member->fits(plan, instruction);
}

/* Whether an operand is a part of an array of the open group: another block may write it later. */
static int reads_part(Plan *plan, const Instruction *instruction) {
  for (int i = 0; i < instruction->inputs; i++) {
    const Slot *root = root_of(plan, instruction->in[i]);
    if (root->place == NOWHERE && operand(plan, instruction, i)->size != root->array.size) return 1;
  }
  return 0;
}

/* Whether an instruction of a group size can run in the steps of the group. */
static int joins(Plan *plan, const Instruction *instruction, int64_t size) {
  if (!plan->group.count) return 0;
  if (size == plan->group.size) return !reads_part(plan, instruction);
  return size < 0 && sums_all(plan, instruction);
}

/* Return the position in line of the next instruction: one that joins the group, one with steps of
 * its own, or the smallest; -1 if none is in line. */
static int choose(Plan *plan, const Schedule *schedule) {
  int with_steps = -1, smallest = -1;
  int64_t least = INT64_MAX;
  for (int k = 0; k < schedule->ready_count; k++) {
    const Instruction *instruction = &schedule->block->instructions[schedule->ready[k]];
    int64_t size = group_size(plan, instruction);
    if (joins(plan, instruction, size)) return k;
    if (size < 0 && with_steps < 0) with_steps = k;
    if (size >= 0 && size < least) least = size, smallest = k;
  }
  return with_steps >= 0 ? with_steps : smallest;
}

/* End the group, which gives its sums. */
static void end_group(Plan *plan, Schedule *schedule) {
  close_group(plan, &plan->group);
  for (int k = 0; k < schedule->sum_count; k++) {
    const Instruction *instruction = &schedule->block->instructions[schedule->sums[k]];
    int64_t parts = schedule->parts[k], out = instruction->out[0];
    if (parts != out) member_of(instruction)->add_parts(plan, out, parts);
  }
  int count = schedule->sum_count;
  schedule->sum_count = 0;
  for (int k = 0; k < count; k++) mark_done(plan, schedule, schedule->sums[k]);
}

/* Note the first step of an instruction, if it is one of the plan's own block. */
static void note_first_step(Plan *plan, const Block *block, int i, int step) {
  int has_step = step < plan->step_count + (plan->group.count > 0);
  if (block == plan->block && has_step) plan->first_step[i] = step;
}

static void plan_next(Plan *plan, Schedule *schedule, int position) {
  int i = take(schedule, position);
  const Block *block = schedule->block;
  const Instruction *instruction = &block->instructions[i];
  int64_t size = group_size(plan, instruction);
  if (size < 0 && joins(plan, instruction, size)) {
    note_first_step(plan, block, i, plan->step_count);
    schedule->sums[schedule->sum_count] = i;
    schedule->parts[schedule->sum_count++] =
        append_sum(plan, &plan->group, instruction, member_of(instruction)->op);
    return;
  }
  if (size >= 0) {
    if (!joins(plan, instruction, size)) close_group(plan, &plan->group);
    plan->group.size = size;
    if (instruction->op->kind == ELEMENTWISE) {
      append(plan, &plan->group, instruction);
    } else {
      const int64_t *offsets = member_of(instruction)->offsets(plan, instruction);
      append_taken(plan, &plan->group, instruction, offsets);
    }
    note_first_step(plan, block, i, plan->step_count);
  } else {
    int first = plan->step_count + (plan->group.count > 0); /* after the step of the open group */
    instruction->op->plan(plan, instruction);
    note_first_step(plan, block, i, first);
  }
  mark_done(plan, schedule, i);
}

void plan_block(Plan *plan, const Block *block, Steps *steps) {
  close_group(plan, &plan->group);
  Steps *outer = plan->steps;
  if (steps) {
    steps->first = NULL;
    steps->end = &steps->first;
    plan->steps = steps;
  }
  Schedule schedule = schedule_of(plan, block);
  for (int i = 0; i < block->count; i++) {
    if (!schedule.waits[i] && starts(plan, &schedule, i)) mark_done(plan, &schedule, i);
  }
  while (schedule.ready_count || schedule.sum_count) {
    int position = choose(plan, &schedule);
    int has_joined = 0;
    if (position >= 0 && schedule.sum_count) {
      const Instruction *next = &block->instructions[schedule.ready[position]];
      has_joined = joins(plan, next, group_size(plan, next));
    }
    if (schedule.sum_count && !has_joined) end_group(plan, &schedule);
    else plan_next(plan, &schedule, position);
  }
  close_group(plan, &plan->group);
  Instruction *rest = memory(plan, (size_t)(block->count + 1) * sizeof *rest);
  int late = 0;
  for (int i = 0; i < block->count; i++) {
    if (schedule.waits[i] == DONE) continue;
    rest[late++] = block->instructions[i];
    if (block == plan->block) plan->first_step[i] = plan->step_count;
  }
  if (late) plan->tape->operators->late(plan, block, rest, late);
  plan->steps = outer;
}

const Tape *tape_of(const Plan *plan) { return plan->tape; }

Steps *into(Plan *plan, Steps *steps) {
  Steps *before = plan->steps;
  plan->steps = steps;
  return before;
}

int64_t begin_loop(Plan *plan) { return ++plan->time; }

/* Keep all that a loop reads from outside until its end. */
void end_loop(Plan *plan, int64_t begin) {
  int64_t end = ++plan->time;
  for (int i = 0; i < plan->values; i++) {
    Slot *given = &plan->slots[i];
    if (given->first < begin && given->last >= begin) given->last = end;
  }
}
