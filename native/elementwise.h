/* Elementwise operators: their names, and the kernels by type. */
#ifndef ELEMENTWISE_H
#define ELEMENTWISE_H

#include "kernel.h"

/* Operators that the core lacks, a smaller module of WebAssembly: see native/build.py. */
#define RARE_OPERATORS(X)                                                                      \
  X(Sin) X(Cos) X(Tan) X(Asin) X(Acos) X(Atan) X(Sinh) X(Cosh) X(Fmod)
#define UNARY_OPERATORS(X)                                                                     \
  X(Neg) X(Abs) X(Sign) X(Reciprocal) X(Relu) X(Sqrt) X(Exp) X(Log) X(Sin) X(Cos) X(Tan)       \
  X(Asin) X(Acos) X(Atan) X(Sinh) X(Cosh) X(Tanh) X(Floor) X(Ceil) X(Round) X(IsNaN) X(IsInf)  \
  X(IsPositiveInf) X(IsNegativeInf) X(Not) X(BitwiseNot) X(SigmoidFunction)                    \
  X(SoftplusFunction) X(Log1pFunction) X(Expm1Function) X(CastToFloat64) X(CastToFloat32)      \
  X(CastToInt64) X(CastToInt32) X(CastToUint8) X(CastToUint32) X(CastToUint64) X(CastToBool)
#define BINARY_OPERATORS(X)                                                                    \
  X(Add) X(Sub) X(Mul) X(Div) X(Mod) X(Fmod) X(Pow) X(Max) X(Min) X(AtLeast) X(AtMost) X(Less) \
  X(LessOrEqual) X(Greater) X(GreaterOrEqual) X(Equal) X(And) X(Or) X(Xor) X(BitwiseAnd)       \
  X(BitwiseOr) X(BitwiseXor) X(ShiftLeft) X(ShiftRight)
#define ELEMENTWISE_OPERATORS(X) UNARY_OPERATORS(X) BINARY_OPERATORS(X) X(Where)

#define ENUMERATOR(name) ELEMENTWISE_##name,
enum { ELEMENTWISE_OPERATORS(ENUMERATOR) ELEMENTWISE_COUNT };

/* An elementwise operation on a part of arrays. */
typedef struct Element Element;
typedef void (*ElementRun)(const Element *element, int64_t start, int64_t count);
struct Element {
  ElementRun run;
  int op;
  int numbers; /* a bit for each operand that is one number beside arrays */
  int locals;  /* a bit for each address within the memory of a block */
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

/* The kernels of an elementwise operator for a type, by which operands are arrays; `one` is for a
 * result of one element. In WebAssembly one kernel is for all of them. */
typedef struct {
  ElementRun vectors;
#ifndef __wasm__
  ElementRun left_number, right_number, one;
#endif
} ElementKernel;

extern const ElementKernel KERNELS_F64[], KERNELS_F32[], KERNELS_I64[], KERNELS_I32[],
    KERNELS_U64[], KERNELS_U32[], KERNELS_U8[], KERNELS_BOOL[];
#ifdef WIDE
extern const ElementKernel KERNELS_F64_WIDE[], KERNELS_F32_WIDE[];
#endif

/* Return a function of a double by its kernel. */
double function_of(int op, double x);

/* Return the kernels of an elementwise operator for a type, without any if it has none. */
const ElementKernel *element_kernel(int op, int dtype);

#endif
