/* Threads for the parts of one step. They live as long as the step: processes may fork between
 * calls, and steps that are divided take longer than starting threads. */
#ifndef THREADS_H
#define THREADS_H

#include <stdint.h>

enum { MOST_THREADS = 16 };

/* Run parts at once, the first in this thread, and return when all have ended. */
void run_parts(void (*run)(void *of, int part), void *of, int parts);

/* Return the number of parts of some nanoseconds of work, roughly, for a number of threads. */
static inline int parts_of_work(int64_t nanoseconds, int threads) {
  enum { LEAST = 100000 }; /* starting a thread takes some 20,000 */
  int64_t parts = nanoseconds / LEAST;
  return parts < 2 || threads < 2 ? 1 : parts < threads ? (int)parts : threads;
}

#endif
