/* Range of a log-probability, for every source of one. */
#ifndef BASE_LOGPROB_H
#define BASE_LOGPROB_H

/* At most 0; what is above it by no more than this is rounding of a sum over the vocabulary. */
#define LOGPROB_MAX 1e-6

#endif
