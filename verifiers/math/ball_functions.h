/* The functions of ball.h. Private to ball*.c. */
#ifndef VERIFIERS_MATH_BALL_FUNCTIONS_H
#define VERIFIERS_MATH_BALL_FUNCTIONS_H

#include "verifiers/math/ball.h"

enum math_outcome math_ball_function(struct math_decider *decider, const struct math_node *node, slong bits,
                                     acb_t ret_value);

/* value is the ball of node: MATH_NO_VALUE if it is surely 0, so that nothing can be divided by it. */
enum math_outcome math_ball_is_zero(struct math_decider *decider, const struct math_node *node, const acb_t value);

#endif
