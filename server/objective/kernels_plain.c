/* Kernels of two lanes: SSE2 on x86-64, elsewhere what the processor has. */
#define LANES_BYTES 16
#define KERNELS objective_kernels_plain
#include "server/objective/kernels_body_private.h"
