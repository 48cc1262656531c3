/* What a log-probability may be, wherever one comes from. */
#ifndef BASE_LOGPROB_H
#define BASE_LOGPROB_H

/* At most 0; what is above it by no more than this is rounding of a sum over the vocabulary. */
#define LOGPROB_MAX 1e-6

#endif
