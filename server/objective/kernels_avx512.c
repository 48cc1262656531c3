/* Kernels of 8 lanes. */
#define LANES_BYTES 64
#define KERNELS objective_kernels_avx512
#if defined(__x86_64__)
#define LANES_TARGET "avx512f,avx512dq"
#include "server/objective/kernels_body_private.h"
#endif
