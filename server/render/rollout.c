/* One rollout: THE table of its members. */
#include "server/render/render.h"
#include "server/render/steps_private.h"

#include "server/record/group_record.h"
#include "server/spec/objective.h"
#include "server/spec/returns.h"

#include <math.h>
#include <stddef.h>

struct render {
    struct json_write *json;
    const struct store_rollout *rollout;
    const struct render_scope *scope;
    double *advantages;    /* of tokens; NULL: all have the rollout's */
    double *surrogates;    /* NULL: none */
    double *contributions; /* NULL: none */
};

enum member_kind {
    MEMBER_INT,         /* int64_t or uint64_t of 63 bits */
    MEMBER_INT_OR_NULL, /* -1: null */
    MEMBER_DOUBLE,      /* NAN: null */
    MEMBER_TEXT,
    MEMBER_ID, /* char[ID_BYTES] */
    MEMBER_BOOL,
    MEMBER_KNOWN, /* enum store_known; unknown: null */
    MEMBER_NAME,  /* an enum with its list of words */
    MEMBER_TIME,
    MEMBER_OBJECT, /* JSON text, {} if absent */
    MEMBER_LIST,   /* JSON text, [] if absent */
    MEMBER_OWN,    /* has a function */
};

enum {
    ALONE = 1, /* outside its group and batch alone */
    LARGE = 2, /* in rows of lists only where it is asked for */
};

struct member {
    const char *name;
    enum member_kind kind;
    unsigned flags;
    unsigned with; /* enum store_with */
    size_t offset;
    const char *const *words;
    void (*write)(const struct render *render);
};

/* ---- members with a function
 * ------------------------------------------------------------------------------------------------ */

static void write_failure(const struct render *render)
{
    const struct store_failure *failure = &render->rollout->failure;
    struct json_write *json = render->json;
    if (!failure->code.data) {
        json_put_null(json, "failure");
        return;
    }
    json_key(json, "failure");
    json_object_begin(json);
    json_put_text(json, "stage", failure->stage);
    json_put_text(json, "code", failure->code);
    json_put_text(json, "message", failure->message);
    json_put_bool(json, "retryable", failure->retryable);
    json_put_int(json, "attempts", failure->attempts);
    json_object_end(json);
}

static void write_timing(const struct render *render)
{
    struct json_write *json = render->json;
    json_key(json, "timing");
    json_object_begin(json);
    json_put_int(json, "queued_us", render->rollout->queued_us);
    json_put_int(json, "engine_us", render->rollout->engine_us);
    json_put_int(json, "verify_us", render->rollout->verify_us);
    json_object_end(json);
}

static void write_completion_ids(const struct render *render)
{
    const struct store_rollout *rollout = render->rollout;
    if (rollout->completion_ids)
        json_put_u32s(render->json, "completion_ids", rollout->completion_ids, rollout->token_count,
                      render->scope->arrays);
    else
        json_put_null(render->json, "completion_ids");
}

static void write_logprobs(const struct render *render)
{
    const struct store_rollout *rollout = render->rollout;
    if (rollout->logprobs)
        json_put_f32s(render->json, "logprobs", rollout->logprobs, rollout->token_count, render->scope->arrays);
    else
        json_put_null(render->json, "logprobs");
}

/* On record all ones is nothing at all. */
static void write_completion_mask(const struct render *render)
{
    const struct store_rollout *rollout = render->rollout;
    if (!rollout->completion_ids) {
        json_put_null(render->json, "completion_mask");
        return;
    }
    _cleanup_free_ uint8_t *ones = NULL;
    if (!rollout->completion_mask) {
        ones = xcalloc(rollout->token_count + 1, 1);
        memset(ones, 1, rollout->token_count);
    }
    json_put_u8s(render->json, "completion_mask", ones ? ones : rollout->completion_mask, rollout->token_count,
                 render->scope->arrays);
}

static void write_terms(const struct render *render, const char *name, const double *values)
{
    if (values)
        json_put_f64s(render->json, name, values, render->rollout->token_count, render->scope->arrays);
    else
        json_put_null(render->json, name);
}

static void write_steps(const struct render *render)
{
    json_key(render->json, "steps");
    render_steps(render->json, render->rollout);
}

static void write_reverified(const struct render *render)
{
    struct json_write *json = render->json;
    json_key(json, "reverified");
    json_array_begin(json);
    for (size_t i = 0; i < render->rollout->later_count; i++) {
        const struct store_later *later = &render->rollout->later[i];
        json_object_begin(json);
        json_put_string(json, "id", later->id);
        json_put_time(json, "at", later->at_us);
        json_put_raw(json, "verdicts", later->verdicts);
        json_put_double(json, "reward", later->reward);
        json_object_end(json);
    }
    json_array_end(json);
}

/* One number, or one for each token. */
static void write_advantage(const struct render *render)
{
    if (render->advantages && render->scope->arrays != JSON_ARRAYS_NONE)
        write_terms(render, "advantage", render->advantages);
    else
        json_put_double(render->json, "advantage", render->rollout->advantage);
}

static void write_surrogates(const struct render *render)
{
    write_terms(render, "surrogates", render->surrogates);
}

/* Before the batch has ended its denominators are not known, and nothing is guessed. */
static void write_contributions(const struct render *render)
{
    if (render->scope->terms && render->scope->terms->closed)
        write_terms(render, "contributions", render->contributions);
}

/* ---- the table
 * -------------------------------------------------------------------------------------------------------------- */

#define AT(member) offsetof(struct store_rollout, member)

static const struct member members[] = {
    {"id", MEMBER_ID, 0, 0, AT(id), NULL, NULL},
    {"run", MEMBER_TEXT, ALONE, 0, AT(run), NULL, NULL},
    {"batch", MEMBER_ID, ALONE, 0, AT(batch_id), NULL, NULL},
    {"group", MEMBER_ID, ALONE, 0, AT(group_id), NULL, NULL},
    {"task", MEMBER_TEXT, ALONE, 0, AT(task), NULL, NULL},
    {"draw", MEMBER_INT, ALONE, 0, AT(draw), NULL, NULL},
    {"tags", MEMBER_OBJECT, ALONE, 0, AT(tags), NULL, NULL},
    {"purpose", MEMBER_NAME, ALONE, 0, AT(purpose), store_purpose_names, NULL},
    {"created_at", MEMBER_TIME, ALONE, 0, AT(created_at_us), NULL, NULL},
    {"sample_index", MEMBER_INT, 0, 0, AT(sample_index), NULL, NULL},
    {"resample", MEMBER_INT, 0, 0, AT(resample), NULL, NULL},
    {"attempts", MEMBER_INT, 0, 0, AT(attempts), NULL, NULL},
    {"state", MEMBER_NAME, 0, 0, AT(state), store_rollout_state_names, NULL},
    {"engine", MEMBER_TEXT, 0, 0, AT(engine), NULL, NULL},
    {"engine_model", MEMBER_TEXT, 0, 0, AT(engine_model), NULL, NULL},
    {"engine_version", MEMBER_TEXT, 0, 0, AT(engine_version), NULL, NULL},
    {"tokenizer_sha256", MEMBER_TEXT, 0, 0, AT(tokenizer_sha256), NULL, NULL},
    {"rolloutd_version", MEMBER_TEXT, 0, 0, AT(rolloutd_version), NULL, NULL},
    {"incarnation", MEMBER_INT, 0, 0, AT(incarnation), NULL, NULL},
    {"policy_revision", MEMBER_INT, 0, 0, AT(policy_revision), NULL, NULL},
    {"revision_at_end", MEMBER_INT_OR_NULL, 0, 0, AT(revision_at_end), NULL, NULL},
    {"engine_revision", MEMBER_TEXT, 0, 0, AT(engine_revision), NULL, NULL},
    {"straddles", MEMBER_BOOL, 0, 0, AT(straddles), NULL, NULL},
    {"segments", MEMBER_LIST, 0, STORE_WITH_SEGMENTS, AT(segments), NULL, NULL},
    {"seed", MEMBER_INT, 0, 0, AT(seed), NULL, NULL},
    {"seed_sent", MEMBER_INT_OR_NULL, 0, 0, AT(seed_sent), NULL, NULL},
    {"seed_honoured", MEMBER_KNOWN, 0, 0, AT(seed_honoured), NULL, NULL},
    {"finish_reason", MEMBER_TEXT, 0, 0, AT(finish_reason), NULL, NULL},
    {"text", MEMBER_TEXT, LARGE, STORE_WITH_TEXT, AT(text), NULL, NULL},
    {"text_replaced", MEMBER_INT, LARGE, STORE_WITH_TEXT, AT(text_replaced), NULL, NULL},
    {"completion_tokens", MEMBER_INT, 0, 0, AT(completion_tokens), NULL, NULL},
    {"completion_ids", MEMBER_OWN, 0, STORE_WITH_ARRAYS, 0, NULL, write_completion_ids},
    {"logprobs", MEMBER_OWN, 0, STORE_WITH_ARRAYS, 0, NULL, write_logprobs},
    {"logprobs_mode", MEMBER_NAME, 0, 0, AT(logprobs_mode), store_logprobs_mode_names, NULL},
    {"completion_mask", MEMBER_OWN, 0, STORE_WITH_ARRAYS, 0, NULL, write_completion_mask},
    {"eos_in_ids", MEMBER_KNOWN, 0, 0, AT(eos_in_ids), NULL, NULL},
    {"trainable", MEMBER_BOOL, 0, 0, AT(trainable), NULL, NULL},
    {"rewards", MEMBER_OBJECT, 0, STORE_WITH_VERDICTS, AT(rewards), NULL, NULL},
    {"heldout", MEMBER_OBJECT, 0, STORE_WITH_VERDICTS, AT(heldout), NULL, NULL},
    {"verdicts", MEMBER_LIST, LARGE, STORE_WITH_VERDICTS, AT(verdicts), NULL, NULL},
    {"steps", MEMBER_OWN, ALONE | LARGE, STORE_WITH_VERDICTS | STORE_WITH_TEXT, 0, NULL, write_steps},
    {"reverified", MEMBER_OWN, ALONE | LARGE, STORE_WITH_LATER, 0, NULL, write_reverified},
    {"reward", MEMBER_DOUBLE, 0, 0, AT(reward), NULL, NULL},
    {"shaped_reward", MEMBER_DOUBLE, 0, 0, AT(shaped_reward), NULL, NULL},
    {"advantage", MEMBER_OWN, 0, 0, 0, NULL, write_advantage},
    {"duplicate", MEMBER_KNOWN, 0, 0, AT(duplicate), NULL, NULL},
    {"surrogates", MEMBER_OWN, 0, STORE_WITH_ARRAYS, 0, NULL, write_surrogates},
    {"contributions", MEMBER_OWN, 0, STORE_WITH_ARRAYS, 0, NULL, write_contributions},
    {"failure", MEMBER_OWN, 0, 0, 0, NULL, write_failure},
    {"timing", MEMBER_OWN, 0, 0, 0, NULL, write_timing},
};

#define BIT(index) (UINT64_C(1) << (index))
static const render_fields prompt_ids_bit = BIT(63); /* the group's */
static const render_fields prompt_bit = BIT(62);     /* the task's, as the reference */
static const render_fields reference_bit = BIT(61);
_Static_assert(ARRAY_LENGTH(members) < 61, "a member is a bit");

render_fields render_field(struct text name)
{
    for (size_t i = 0; i < ARRAY_LENGTH(members); i++)
        if (text_equals(name, members[i].name))
            return BIT(i);
    if (text_equals(name, "prompt"))
        return prompt_bit;
    if (text_equals(name, "reference"))
        return reference_bit;
    return text_equals(name, "prompt_ids") ? prompt_ids_bit : 0;
}

void render_advise(struct text name, char ret_advice[ADVICE_BYTES])
{
    names_advise(name, members, sizeof(members[0]), ARRAY_LENGTH(members), ret_advice);
}

render_fields render_arrays(void)
{
    render_fields fields = 0;
    for (size_t i = 0; i < RETURNS_COUNT; i++)
        fields |= render_field(text_of(returns_names[i]));
    return fields;
}

render_fields render_row(void)
{
    render_fields fields = RENDER_ALL & ~render_arrays();
    for (size_t i = 0; i < ARRAY_LENGTH(members); i++)
        if (members[i].flags & LARGE)
            fields &= ~BIT(i);
    return fields;
}

unsigned render_with(render_fields fields, enum json_arrays arrays)
{
    unsigned with = (fields & prompt_ids_bit ? STORE_WITH_ARRAYS : 0) | (fields & RENDER_TASK ? STORE_WITH_TASK : 0);
    for (size_t i = 0; i < ARRAY_LENGTH(members); i++)
        if (fields & BIT(i))
            with |= members[i].with;
    return arrays == JSON_ARRAYS_NONE ? with & ~(unsigned)STORE_WITH_ARRAYS : with;
}

/* ---- objects
 * ---------------------------------------------------------------------------------------------------------------- */

static void write_known(struct json_write *json, const char *name, enum store_known known)
{
    if (known == STORE_KNOWN_UNKNOWN)
        json_put_null(json, name);
    else
        json_put_bool(json, name, known == STORE_KNOWN_YES);
}

static void write_json(struct json_write *json, const char *name, struct text value, const char *if_absent)
{
    json_put_raw(json, name, value.length_bytes ? value : text_of(if_absent));
}

static void write_member(const struct render *render, const struct member *member)
{
    struct json_write *json = render->json;
    const void *at = (const char *)render->rollout + member->offset;
    switch (member->kind) {
    case MEMBER_INT:
        json_put_int(json, member->name, *(const int64_t *)at);
        break;
    case MEMBER_INT_OR_NULL:
        json_put_int_or_null(json, member->name, *(const int64_t *)at);
        break;
    case MEMBER_DOUBLE:
        json_put_double(json, member->name, *(const double *)at);
        break;
    case MEMBER_TEXT:
        json_put_text(json, member->name, *(const struct text *)at);
        break;
    case MEMBER_ID:
        json_put_string(json, member->name, at);
        break;
    case MEMBER_BOOL:
        json_put_bool(json, member->name, *(const bool *)at);
        break;
    case MEMBER_KNOWN:
        write_known(json, member->name, *(const enum store_known *)at);
        break;
    case MEMBER_NAME:
        json_put_string(json, member->name, member->words[*(const unsigned *)at]);
        break;
    case MEMBER_TIME:
        json_put_time(json, member->name, *(const int64_t *)at);
        break;
    case MEMBER_OBJECT:
        write_json(json, member->name, *(const struct text *)at, "{}");
        break;
    case MEMBER_LIST:
        write_json(json, member->name, *(const struct text *)at, "[]");
        break;
    case MEMBER_OWN:
        member->write(render);
        break;
    }
}

static bool is_wanted(const struct render_scope *scope, size_t index)
{
    const struct member *member = &members[index];
    if (!(scope->fields & BIT(index)) || (member->flags & ALONE && !scope->alone))
        return false;
    return !(member->with & STORE_WITH_ARRAYS && (scope->arrays == JSON_ARRAYS_NONE || scope->columns));
}

/* The rollout among the members of its group, where its terms depend on them: filter, means over groups, real. */
static int find_group(const struct render *render, struct group_record *ret_record)
{
    const struct store_rollout *rollout = render->rollout;
    const struct store_group *group = render->scope->group;

    if (group) {
        group_record_of_rollouts(group->rollouts, group->rollout_count, -1, NULL, NULL, ret_record);
        return 0;
    }
    const struct render_terms *terms = render->scope->terms;
    if (!terms->reader)
        return -1;
    return group_record_read(terms->reader, text_of(rollout->group_id), &terms->knobs, false, NULL, ret_record) ==
                   STORE_OK
               ? 0
               : -1;
}

static int evaluate_terms(struct render *render)
{
    const struct render_terms *terms = render->scope->terms;
    const struct objective_totals *totals = terms->closed ? &terms->totals : NULL;
    _cleanup_(group_record_finish) struct group_record record = {0};
    struct objective_sequence own = group_record_sequence(render->rollout);
    struct objective_result result;

    own.rewarded = true;
    own.token_advantages = render->advantages;
    own.surrogates = render->surrogates;
    own.contributions = render->contributions;
    if (!objective_terms_need_group(&terms->knobs))
        return objective_sampled_terms(&terms->knobs, totals, 1, &own, &result);
    if (find_group(render, &record) < 0)
        return -1;
    group_record_reward_by_advantage(&record);
    for (size_t i = 0; i < record.count; i++) {
        record.sequences[i].counted_only = true;
        if (record.sample_index[i] == render->rollout->sample_index)
            record.sequences[i] = own;
    }
    return objective_sampled_terms(&terms->knobs, totals, record.count, record.sequences, &result);
}

static bool wants_terms(const struct render_scope *scope)
{
    if (scope->arrays == JSON_ARRAYS_NONE)
        return false;
    if (scope->columns)
        return scope->columns->arrays & (1U << RETURNS_SURROGATES | 1U << RETURNS_CONTRIBUTIONS);
    return scope->fields & (render_field(TEXT_LITERAL("surrogates")) | render_field(TEXT_LITERAL("contributions")));
}

/* Surrogates and contributions at ratio 1, for a rollout that is part of the loss. */
static void compute_terms(struct render *render)
{
    const struct store_rollout *rollout = render->rollout;
    const struct render_terms *terms = render->scope->terms;
    bool has_terms =
        terms && terms->known && !isnan(rollout->advantage) && rollout->trainable && rollout->completion_ids;
    if (!has_terms || !wants_terms(render->scope))
        return;
    render->surrogates = xcalloc(rollout->token_count + 1, sizeof(double));
    render->contributions = terms->closed ? xcalloc(rollout->token_count + 1, sizeof(double)) : NULL;
    if (evaluate_terms(render) == 0)
        return;
    free(TAKE_PTR(render->surrogates));
    free(TAKE_PTR(render->contributions));
}

void render_task(struct json_write *json, render_fields fields, struct text prompt, struct text reference)
{
    if (fields & prompt_bit)
        json_put_raw(json, "prompt", prompt);
    if (fields & reference_bit)
        json_put_raw(json, "reference", reference);
}

void render_rollout(struct json_write *json, const struct store_rollout *rollout, const struct render_scope *scope)
{
    struct render render = {.json = json, .rollout = rollout, .scope = scope};
    render.advantages = token_advantages_of(rollout);
    compute_terms(&render);
    json_object_begin(json);
    for (size_t i = 0; i < ARRAY_LENGTH(members); i++)
        if (is_wanted(scope, i))
            write_member(&render, &members[i]);
    if (scope->alone)
        render_task(json, scope->fields, rollout->prompt, rollout->reference);
    json_object_end(json);
    if (scope->columns)
        render_columns_add_rollout(scope->columns, rollout, render.surrogates, render.contributions);
    free(render.advantages);
    free(render.surrogates);
    free(render.contributions);
}

void render_terms_init(struct render_terms *terms, const struct store_batch *batch)
{
    terms->known = objective_json_parse(batch->objective, &terms->knobs) == 0;
    terms->closed = terms->known && batch->state != STORE_BATCH_RUNNING;
    terms->reader = NULL;
    terms->totals = (struct objective_totals){.tokens = (double)batch->total_tokens,
                                              .sequences = (double)batch->total_sequences,
                                              .groups = (double)batch->total_groups,
                                              .rollouts = NAN};
}
