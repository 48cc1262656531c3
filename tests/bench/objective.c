/* Nanoseconds for each token of objective_evaluate(): GRPO's loss, its contributions and its gradient, one thread.
 *
 *     objective [repeats]
 *
 * Log-probabilities of two policies come in as float, contributions and gradient go out as double; the shapes are those
 * of the peers: 64 completions of 1,000 tokens, and 1,024 completions of 512 to 1,536; then other losses, a mask, the
 * engine's log-probabilities. One line of JSON for each. */
#include "server/objective/objective.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MEMBERS = 8 };

struct shape {
    const char *name;
    size_t sequences, shortest, longest;
    double beta;
    const char *preset; /* NULL: grpo */
    bool masked;        /* a quarter of the tokens is not trainable, in runs */
    bool rollout;       /* with the engine's log-probabilities */
};

static const struct shape shapes[] = {
    {"64 x 1000", 64, 1000, 1000, 0},
    {"1024 x 1024, ragged", 1024, 512, 1536, 0},
    {"1024 x 64 to 1024, ragged", 1024, 64, 1024, 0},
    {"64 x 1000, KL k3", 64, 1000, 1000, 0.04},
    {"1024 x 1024, ragged, KL k3", 1024, 512, 1536, 0.04},
    {"1024 x 1024, ragged, a quarter masked", 1024, 512, 1536, 0, .masked = true},
    {"16384 x 64, ragged", 16384, 32, 96, 0},
    {"1024 x 1024, ragged, verl's PPO", 1024, 512, 1536, 0, "verl@1dda039b"},
    {"1024 x 1024, ragged, GSPO", 1024, 512, 1536, 0, "gspo"},
    {"1024 x 1024, ragged, CISPO", 1024, 512, 1536, 0, "cispo"},
    {"1024 x 1024, ragged, rollout metrics", 1024, 512, 1536, 0, .rollout = true},
    {"1024 x 1024, ragged, TRL's importance", 1024, 512, 1536, 0, "trl@1.16", .rollout = true},
};

struct material {
    size_t tokens;
    struct objective_sequence *sequences;
    struct objective_group *groups;
    float *logprobs, *old, *reference;
    uint8_t *mask;
    double *contributions, *slopes;
};

static double next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) / 9007199254740992.0;
}

static void *room(size_t count, size_t size_bytes)
{
    void *memory = calloc(count, size_bytes);
    if (!memory)
        abort();
    return memory;
}

static void add_sequence(const struct shape *shape, struct material *material, size_t index, size_t tokens,
                         uint64_t *state)
{
    size_t first = material->tokens;

    material->sequences[index] = (struct objective_sequence){
        .group = index / MEMBERS,
        .reward = next_random(state) < 0.5,
        .rewarded = true,
        .tokens = tokens,
        .length = (int64_t)tokens,
        .logprobs.f32 = &material->logprobs[first],
        .old_logprobs.f32 = &material->old[first],
        .ref_logprobs.f32 = &material->reference[first],
        .rollout_logprobs.f32 = shape->rollout ? &material->reference[first] : NULL,
        .mask = shape->masked ? &material->mask[first] : NULL,
        .contributions = &material->contributions[first],
        .dloss_dlogp = &material->slopes[first],
    };
    for (size_t t = first; t < first + tokens; t++) {
        material->old[t] = (float)(-3 * next_random(state));
        material->logprobs[t] = material->old[t] + (float)(next_random(state) - 0.5);
        material->reference[t] = material->old[t] + (float)(next_random(state) - 0.5);
        material->mask[t] = (t - first) % 400 < 300;
    }
    material->tokens += tokens;
}

static void fill(const struct shape *shape, struct material *ret_material)
{
    size_t most = shape->sequences * shape->longest;
    uint64_t state = 7;

    *ret_material = (struct material){
        .sequences = room(shape->sequences, sizeof *ret_material->sequences),
        .groups = room(shape->sequences, sizeof *ret_material->groups),
        .logprobs = room(most, sizeof(float)),
        .old = room(most, sizeof(float)),
        .reference = room(most, sizeof(float)),
        .mask = room(most, 1),
        .contributions = room(most, sizeof(double)),
        .slopes = room(most, sizeof(double)),
    };
    for (size_t i = 0; i < shape->sequences; i++) {
        size_t spread = (size_t)(next_random(&state) * (double)(shape->longest - shape->shortest + 1));
        add_sequence(shape, ret_material, i, shape->shortest + spread, &state);
    }
}

static void empty(struct material *material)
{
    free(material->sequences);
    free(material->groups);
    free(material->logprobs);
    free(material->old);
    free(material->reference);
    free(material->mask);
    free(material->contributions);
    free(material->slopes);
}

static double evaluate_ns(const struct objective_request *request)
{
    struct objective_result result;
    struct objective_error error;
    struct timespec before, after;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    if (objective_evaluate(request, &result, &error) < 0) {
        fprintf(stderr, "%s: %s\n", error.field, error.message);
        exit(1);
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    return (double)(after.tv_sec - before.tv_sec) * 1e9 + (double)(after.tv_nsec - before.tv_nsec);
}

static void measure(const struct shape *shape, int repeats)
{
    struct objective_knobs knobs;
    struct material material;
    double best = 0;

    const char *preset = shape->preset ? shape->preset : "grpo";
    if (!objective_preset_find(preset, strlen(preset), &knobs))
        abort();
    knobs.beta = shape->beta;
    fill(shape, &material);
    struct objective_request request = {.knobs = &knobs,
                                        .sequences = material.sequences,
                                        .sequence_count = shape->sequences,
                                        .groups = material.groups,
                                        .group_count = (shape->sequences + MEMBERS - 1) / MEMBERS};
    for (int i = 0; i < repeats; i++) {
        double ns = evaluate_ns(&request) / (double)material.tokens;
        best = i == 0 || ns < best ? ns : best;
    }
    printf("{\"shape\": \"%s\", \"tokens\": %zu, \"ns_per_token\": %.2f}\n", shape->name, material.tokens, best);
    empty(&material);
}

int main(int count, char **arguments)
{
    int repeats = count > 1 ? atoi(arguments[1]) : 20;

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        measure(&shapes[i], repeats);
    return 0;
}
