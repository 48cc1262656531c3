/* objective_json: objectives as JSON. The table of knobs (server/objective/objective.h) is read and written by its
 * rows; nothing in here knows a knob by name but `preset` and `epsilon`. One thread at a time. */
#ifndef SERVER_SPEC_OBJECTIVE_H
#define SERVER_SPEC_OBJECTIVE_H

#include "server/base/json_write.h"
#include "server/base/text.h"
#include "server/input/input.h"
#include "server/objective/objective.h"

/* Reads {"preset", "epsilon", sections…} over the preset's knobs. object NULL: the default preset.
 * 0, or -1 with the call refused: a name that no table knows 400 unknown_field, a wrong type 400 invalid_field, a value
 * that is in no table or out of range, a knob that its kind does not use, a contradiction
 * 422 objective_options; each with its path (`objective.loss.eps_hgih`). */
int objective_json_read(struct json_input *input, const json_t *object, const char *path,
                        struct objective_knobs *ret_knobs);

/* Writes one object with every knob of the chosen kinds. objective_json_read() and objective_json_parse() read it back
 * the same. */
void objective_json_write(struct json_write *json, const struct objective_knobs *knobs);

/* The list of paths whose knobs are not those of the preset, as an array: ["loss.eps_high", "shaping"]. */
void objective_json_write_overrides(struct json_write *json, const struct objective_knobs *knobs);

/* Reads back what objective_json_write() wrote and the record kept. -1 if it is something else. */
int objective_json_parse(struct text stored, struct objective_knobs *ret_knobs);

/* Members "tokens", "sequences", "groups" of an object that the caller has opened, and "rollouts" where their number is
 * another than that of the sequences; NAN is written as null. */
void objective_json_write_totals(struct json_write *json, const struct objective_totals *totals);

#endif
