/* Threads of the operating system. */
#define _POSIX_C_SOURCE 200809L
#include "threads.h"

typedef struct {
  void (*run)(void *of, int part);
  void *of;
  int part;
} Part;

#ifdef __wasm__
void run_parts(void (*run)(void *of, int part), void *of, int parts) {
  for (int part = 0; part < parts; part++) run(of, part);
}
#else

#ifdef _WIN32
#include <windows.h>
typedef HANDLE Thread;

static DWORD WINAPI run_part(void *given) {
  const Part *part = given;
  part->run(part->of, part->part);
  return 0;
}

static int start(Thread *thread, Part *part) {
  *thread = CreateThread(NULL, 0, run_part, part, 0, NULL);
  return *thread != NULL;
}

static void join(Thread thread) {
  WaitForSingleObject(thread, INFINITE);
  CloseHandle(thread);
}
#else
#include <pthread.h>
#include <signal.h>
typedef pthread_t Thread;

static void *run_part(void *given) {
  const Part *part = given;
  part->run(part->of, part->part);
  return NULL;
}

/* Signals go to the threads of the caller, whose handlers know them. */
static int start(Thread *thread, Part *part) {
  sigset_t all, before;
  sigfillset(&all);
  if (pthread_sigmask(SIG_SETMASK, &all, &before)) return 0;
  int failed = pthread_create(thread, NULL, run_part, part);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return !failed;
}

static void join(Thread thread) { pthread_join(thread, NULL); }
#endif

void run_parts(void (*run)(void *of, int part), void *of, int parts) {
  Thread threads[MOST_THREADS];
  Part given[MOST_THREADS];
  int is_started[MOST_THREADS] = {0};
  for (int i = 1; i < parts; i++) {
    given[i] = (Part){run, of, i};
    is_started[i] = start(&threads[i], &given[i]);
  }
  run(of, 0);
  for (int i = 1; i < parts; i++) {
    if (is_started[i]) join(threads[i]);
    else run(of, i);
  }
}
#endif
