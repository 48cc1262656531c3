/* The order of a probe: GETs, the tokens of a text, questions. */
#include "client/adapters/reply.h"
#include "client/probe/dialogue_private.h"

#include <stdio.h>
#include <string.h>

void probe_init(struct probe *probe, const struct probe_rules *rules)
{
    *probe = (struct probe){.rules = *rules, .facts = {.adapter = rules->adapter, .serves_wanted = true}};
    gets_next(probe);
}

void probe_finish(struct probe *probe)
{
    if (probe->exchange_open)
        exchange_finish(&probe->exchange);
    probe->exchange_open = false;
}

const struct sample_error *probe_failed(const struct probe *probe)
{
    return probe->error.message[0] ? &probe->error : NULL;
}

bool probe_is_sampling(const struct probe *probe)
{
    return probe->phase == PROBE_PHASE_QUESTIONS;
}

bool probe_gave_samples(const struct probe *probe)
{
    for (size_t i = 0; i < PROBE_QUESTIONS; i++)
        if (probe->answers[i].given)
            return true;
    return false;
}

static void end_questions(struct probe *probe)
{
    probe->phase = PROBE_PHASE_OVER;
    probe_conclude(probe->answers, &probe->facts.capabilities);
    probe->facts.capabilities.asked = !probe->in_vain;
}

bool probe_build(struct probe *probe, struct engine_call *ret_call)
{
    *ret_call = (struct engine_call){.method = "GET"};
    buffer_init(&ret_call->body, 64 * 1024);
    if (probe->phase == PROBE_PHASE_GETS)
        ret_call->path = probe->get->path;
    else if (probe->phase == PROBE_PHASE_TOKENS)
        tokens_build(probe, ret_call);
    else if (probe->phase != PROBE_PHASE_QUESTIONS)
        return false;
    else if (!questions_build(probe, ret_call))
        end_questions(probe);
    return probe->phase != PROBE_PHASE_OVER;
}

static bool fail(struct probe *probe, const struct sample_error *error)
{
    probe->error = *error;
    if (!probe->error.message[0])
        error_message(&probe->error, "the probe failed");
    probe->phase = PROBE_PHASE_OVER;
    return false;
}

void probe_give_up_samples(struct probe *probe, const char *why)
{
    struct engine_capabilities *capabilities = &probe->facts.capabilities;

    probe_conclude(probe->answers, capabilities);
    if (!capabilities->note[0])
        snprintf(capabilities->note, sizeof(capabilities->note), "the questions ended early: %s", why);
    probe->phase = PROBE_PHASE_OVER;
}

bool probe_is_stranger(const struct probe *probe, char ret_why[SAMPLE_MESSAGE_BYTES])
{
    if (probe_failed(probe) || probe->recognised)
        return false;
    gets_say_stranger(probe, ret_why);
    return true;
}

/* After the GETs: may it be asked more? Only an engine gets a POST. */
static bool begin_asking(struct probe *probe)
{
    struct engine_call call;

    probe->phase = probe->rules.ask_samples ? PROBE_PHASE_QUESTIONS : PROBE_PHASE_OVER;
    if (!probe->recognised || !probe->facts.adapter) {
        probe->recognised = false;
        probe->phase = PROBE_PHASE_OVER;
    } else if (!probe->facts.serves_wanted) {
        probe->phase = PROBE_PHASE_OVER; /* it is refused, whatever it would say */
    } else if (probe->rules.ask_tokens) {
        buffer_init(&call.body, 64 * 1024);
        if (tokens_build(probe, &call))
            probe->phase = PROBE_PHASE_TOKENS;
        engine_call_finish(&call);
    }
    return probe->phase != PROBE_PHASE_OVER;
}

static bool take_get(struct probe *probe, const struct engine_reply *reply)
{
    struct sample_error error = {.code = SAMPLE_ENGINE_ERROR, .status = reply->status};

    gets_read(probe, reply);
    gets_next(probe);
    if ((reply->status >= 502 && reply->status <= 504) ||
        (!probe->get && !probe->recognised && probe->is_busy)) { /* another time */
        refuse_status(&error, reply);
        return fail(probe, &error);
    }
    return probe->get || begin_asking(probe);
}

bool probe_take(struct probe *probe, const struct engine_reply *reply, const struct sample_error *transport_error)
{
    if (probe->phase == PROBE_PHASE_GETS)
        return reply ? take_get(probe, reply) : fail(probe, transport_error);
    if (!reply) {
        probe_give_up_samples(probe, transport_error->message);
        return false;
    }
    if (probe->phase == PROBE_PHASE_TOKENS) {
        tokens_read(probe, reply);
        probe->phase = probe->rules.ask_samples ? PROBE_PHASE_QUESTIONS : PROBE_PHASE_OVER;
        return probe->rules.ask_samples;
    }
    if (questions_take(probe, reply))
        return true;
    end_questions(probe);
    return false;
}
