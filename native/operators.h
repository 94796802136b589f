/* All operators of tapes. */
#ifndef OPERATORS_H
#define OPERATORS_H

#include "tape.h"

extern const Operators OPERATORS;

#endif
