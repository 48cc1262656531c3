#include "server/settings/table.h"

#include "server/base/cleanup.h"
#include "server/base/clock.h"

static const char *const log_levels[] = {"debug", "info", "warning", "error", NULL};
static const char *const log_formats[] = {"text", "json", NULL};
static const char *const booleans[] = {"false", "true", NULL};
static const char *const policy_modes[] = {"wait", "abort", "straddle", NULL};
static const char *const durabilities[] = {[DURABILITY_FULL] = "full", [DURABILITY_NORMAL] = "normal", NULL};

const char *const engine_kinds[] = {"vllm", "vllm_generate", "sglang", "llamacpp", "openai_compat", NULL};

#define AT(field) offsetof(struct settings, field)
#define DAYS(days) ((days)*INT64_C(86400) * US_PER_S)
#define GIB(number) ((number)*INT64_C(1073741824))

/* key, kind, target, default, help, minimum, maximum, choices. config/rolloutd.yaml shows the same rows; a test
 * compares. */
const struct setting_row setting_rows[] = {
    {"listen", SETTING_TEXT, AT(listen), "127.0.0.1:8787",
     "Numeric address and port; port 0 picks a free one. An address that is not loopback needs token_file.", 0, 0,
     NULL},
    {"database", SETTING_TEXT, AT(database), "rolloutd.db",
     "The SQLite file, made if it is not there; on a local disk.", 0, 0, NULL},
    {"ready_file", SETTING_TEXT, AT(ready_file), "", "Receives the base URL once the service answers.", 0, 0, NULL},
    {"token_file", SETTING_TEXT, AT(token_file), "",
     "Holds the bearer token that requests must carry; must not be readable for everybody.", 0, 0, NULL},
    {"workers", SETTING_INT, AT(workers), "0", "Threads that parse and compute; 0: one per processor, at least 2.", 0,
     1024, NULL},
    {"readers", SETTING_INT, AT(readers), "0",
     "Threads beside them for requests that read the record; 0: half as many as workers.", 0, 1024, NULL},
    {"text_workers", SETTING_INT, AT(text_workers), "0",
     "Locked-down processes that read texts of models at once; eight more may wait for the next text of their run. 0: "
     "one per processor, at least 2.",
     0, 1024, NULL},
    {"log.level", SETTING_CHOICE, AT(log_level), "info", "What is logged: this and what is worse.", 0, 0, log_levels},
    {"log.format", SETTING_CHOICE, AT(log_format), "text", "Log lines for people or for machines.", 0, 0, log_formats},
    {"body_limit", SETTING_SIZE, AT(body_limit_bytes), "64MiB", "The largest JSON body that is read.", 1024, GIB(16),
     NULL},
    {"safetensors_limit", SETTING_SIZE, AT(safetensors_limit_bytes), "1GiB",
     "The largest safetensors body that is read.", 1024, GIB(64), NULL},
    {"memory_budget", SETTING_SIZE, AT(memory_budget_bytes), "1GiB",
     "Bytes for bodies, engine replies, rollouts that are not answered yet, the record's caches and what is kept "
     "for the next body; beyond it requests get 429.",
     1048576, GIB(4096), NULL},
    {"connection_limit", SETTING_INT, AT(connection_limit), "4096", "Client connections at once.", 1, 1000000, NULL},
    {"connection_timeout", SETTING_DURATION, AT(connection_timeout_us), "60s",
     "An idle client connection is closed after this, in whole seconds.", US_PER_S, DAYS(1), NULL},
    {"body_timeout", SETTING_DURATION, AT(body_timeout_us), "60s", "A request must have arrived completely by then.",
     US_PER_MS, DAYS(1), NULL},
    {"reply_timeout", SETTING_DURATION, AT(reply_timeout_us), "30s",
     "A client that takes nothing of its reply for so long is cut off; a reply waits so long for room in "
     "memory_budget.",
     US_PER_MS, DAYS(1), NULL},
    {"drain_timeout", SETTING_DURATION, AT(drain_timeout_us), "30s",
     "How long running batches may go on after SIGTERM.", 0, DAYS(1), NULL},
    {"default_deadline", SETTING_DURATION, AT(default_deadline_us), "30m", "A batch's deadline where it names none.",
     US_PER_MS, DAYS(30), NULL},
    {"rollout_timeout", SETTING_DURATION, AT(rollout_timeout_us), "10m",
     "Time of one rollout from its dispatch where the batch names none.", US_PER_MS, DAYS(30), NULL},
    {"wait_get", SETTING_DURATION, AT(wait_get_us), "30s", "How long a GET that waits does so where it does not say.",
     0, DAYS(1), NULL},
    {"max_staleness", SETTING_OPTIONAL_INT, AT(max_staleness), "none",
     "Revisions that a batch may lag behind its run where it names no limit; none: any number.", 0, INT64_MAX, NULL},
    {"policy.mode", SETTING_CHOICE, AT(policy_mode), "wait",
     "What a weight update does with samples in flight where it does not say: it waits, aborts them, or lets them"
     " straddle.",
     0, 0, policy_modes},
    {"policy.deadline", SETTING_DURATION, AT(policy_deadline_us), "10m",
     "A weight update that is neither committed nor cancelled by then ends, with a warning, where it does not say.",
     US_PER_MS, DAYS(1), NULL},
    {"max_rollouts_per_batch", SETTING_INT, AT(max_rollouts_per_batch), "65536", "Rollouts in one batch.", 1, 10000000,
     NULL},
    {"batches_limit", SETTING_INT, AT(batches_limit), "256", "Batches running at once; beyond it a new one gets 429.",
     1, 100000, NULL},
    {"sampling.n", SETTING_INT, AT(sampling_n), "8", "Rollouts of a task where the batch does not say.", 1, 65536,
     NULL},
    {"sampling.max_tokens", SETTING_INT, AT(sampling_max_tokens), "1024",
     "Tokens of a completion where the batch does not say.", 1, 16777216, NULL},
    {"sampling.temperature", SETTING_DOUBLE, AT(sampling_temperature), "1.0",
     "Sampling temperature where the batch does not say.", 0, 100, NULL},
    {"sampling.top_p", SETTING_DOUBLE, AT(sampling_top_p), "1.0",
     "Nucleus sampling where the batch does not say; 1: off.", 0, 1, NULL},
    {"engines", SETTING_ENGINES, AT(engines), "",
     "Inference servers: URL, or URL#kind=vllm&model=NAME&in_flight=256; several with blanks between them.", 0, 0,
     NULL},
    {"engine.connect_timeout", SETTING_DURATION, AT(engine_connect_timeout_us), "3s",
     "An engine must accept a connection by then.", US_PER_MS, DAYS(1), NULL},
    {"engine.attempts", SETTING_INT, AT(engine_attempts), "4", "Requests for one rollout at most, the first included.",
     1, 100, NULL},
    {"engine.backoff_min", SETTING_DURATION, AT(engine_backoff_min_us), "100ms",
     "Pause before the second request, doubled before each further one.", US_PER_MS, DAYS(1), NULL},
    {"engine.backoff_max", SETTING_DURATION, AT(engine_backoff_max_us), "5s", "The longest such pause.", US_PER_MS,
     DAYS(1), NULL},
    {"engine.pause_max", SETTING_DURATION, AT(engine_pause_max_us), "60s",
     "The longest pause that an engine gets by asking for one; then a single request asks again.", US_PER_MS, DAYS(1),
     NULL},
    {"engine.down_timeout", SETTING_DURATION, AT(engine_down_timeout_us), "60s",
     "How long rollouts wait for a pool of which no engine can be used; then they fail.", 0, DAYS(30), NULL},
    {"engine.retry_ratio", SETTING_DOUBLE, AT(engine_retry_ratio), "0.2",
     "Repeated requests per first one, of an engine and of a batch, beside 10 to begin with.", 0, 100, NULL},
    {"engine.token_dir", SETTING_TEXT, AT(engine_token_dir), "",
     "Folder with the keys of engines that are named at run time, a file each; a request gives only the file's name.",
     0, 0, NULL},
    {"engine.probe_samples", SETTING_CHOICE, AT(engine_probe_samples), "true",
     "Whether probes ask engines for a few tokens, to see whether seeds, ids and log-probabilities are honest.", 0, 0,
     booleans},
    {"engine.check_interval", SETTING_DURATION, AT(engine_check_interval_us), "30s",
     "An engine that is up is looked at again after this.", US_PER_S / 10, DAYS(1), NULL},
    {"verify_timeout", SETTING_DURATION, AT(verify_timeout_us), "5s", "Time of one completion with its text verifiers.",
     US_PER_MS, DAYS(1), NULL},
    {"verify_queue", SETTING_INT, AT(verify_queue), "4096", "Completions that may wait for a text worker.", 1, 10000000,
     NULL},
    {"crashes.keep", SETTING_INT, AT(crashes_keep), "64",
     "Completions that crashed or hung a verifier and are kept, a file each, in a folder beside the database; the"
     " oldest go; 0: none.",
     0, 100000, NULL},
    {"crashes.keep_bytes", SETTING_SIZE, AT(crashes_keep_bytes), "64MiB", "The size of that folder.", 1024, GIB(64),
     NULL},
    {"crashes.alarm", SETTING_DOUBLE, AT(crashes_alarm), "0.01",
     "Share of a run's completions that crash or hang a verifier at which an alarm is raised, from three on; 0: no"
     " alarm.",
     0, 1, NULL},
    {"crashes.window", SETTING_INT, AT(crashes_window), "1000", "Completions of a run over which that share is taken.",
     2, 100000000, NULL},
    {"scan_budget", SETTING_INT, AT(scan_budget), "100000",
     "Rows that one page of a filtered list may read; a page that would need more is short.", 1, 1000000000, NULL},
    {"commit_rows", SETTING_INT, AT(commit_rows), "256", "Operations in one commit at most.", 1, 1000000, NULL},
    {"commit_delay", SETTING_DURATION, AT(commit_delay_us), "2ms",
     "How long a commit waits for company; one of rollouts alone, while others are sampled, 25 times as long.", 0,
     US_PER_S, NULL},
    {"durability", SETTING_CHOICE, AT(durability), "full",
     "full: what was answered survives a power failure; normal: it survives the death of the process.", 0, 0,
     durabilities},
};
const size_t setting_count = ARRAY_LENGTH(setting_rows);
_Static_assert(ARRAY_LENGTH(setting_rows) <= SETTING_MAXIMUM, "more rows than places for them");

const struct engine_field engine_fields[ENGINE_FIELD_COUNT] = {
    {"url", offsetof(struct raw_engine, url)},
    {"name", offsetof(struct raw_engine, name)},
    {"pool", offsetof(struct raw_engine, pool)},
    {"kind", offsetof(struct raw_engine, kind)},
    {"model", offsetof(struct raw_engine, model)},
    {"token_file", offsetof(struct raw_engine, token_file)},
    {"in_flight", offsetof(struct raw_engine, in_flight)},
    {"shared", offsetof(struct raw_engine, shared)},
};
