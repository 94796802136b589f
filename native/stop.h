/* The end of a module of WebAssembly. */
#ifndef STOP_H
#define STOP_H

/* Stop the module, which can run no more; its caller reads the problem. */
_Noreturn void stop(const char *problem);

#endif
