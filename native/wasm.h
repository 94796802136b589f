/* The module of WebAssembly. */
#ifndef WASM_H
#define WASM_H

/* Stop the module, which can run no more; its caller reads the problem. */
_Noreturn void stop(const char *problem);

#endif
