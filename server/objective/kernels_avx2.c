/* Kernels of 4 lanes. */
#define LANES_BYTES 32
#define KERNELS objective_kernels_avx2
#if defined(__x86_64__)
#define LANES_TARGET "avx2"
#include "server/objective/kernels_body_private.h"
#endif
