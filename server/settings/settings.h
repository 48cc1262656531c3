/* settings: what the service was told, from one table (settings/table.c): a row is a key, its type, default, limits and
 * help.
 *
 * Precedence: command line, environment (ROLLOUTD_ and the key in capitals, dots as underscores), file, default. An
 * empty variable counts as none; so does a key without a value in the file. Whatever is wrong ends the start with one
 * line that names the key, the value, where it came from and what was expected. Loaded once, before threads; then
 * read-only, so any thread may read it. */
#ifndef SERVER_SETTINGS_SETTINGS_H
#define SERVER_SETTINGS_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct engine_settings {
    char *name;        /* e1, e2, … unless given */
    char *pool;        /* "default" unless given; a batch's field `engine` names it */
    char *url;         /* without the fragment and without a slash at the end */
    const char *kind;  /* one of engine_kinds; NULL: find out by probing */
    char *model;       /* NULL: the engine's first */
    char *token;       /* content of its token_file, without white space around it; NULL: none */
    int64_t in_flight; /* requests at once; 0: learned */
    bool shared;       /* several runs may use it at the same time */
};

extern const char *const engine_kinds[]; /* NULL-terminated */

enum durability { DURABILITY_FULL, DURABILITY_NORMAL };

struct settings {
    char *listen;         /* as given: "127.0.0.1:8787", "[::1]:0" */
    char *listen_host;    /* "127.0.0.1", "::1": a numeric address */
    uint16_t listen_port; /* 0: a free one */
    bool listen_ipv6;
    char *database;
    char *ready_file;     /* NULL: none */
    char *token_file;     /* NULL: none */
    char *token;          /* its content without white space around it; NULL: requests need no token */
    int64_t workers;      /* resolved: never 0 */
    int64_t readers;      /* resolved: never 0 */
    int64_t text_workers; /* resolved: never 0 */
    int log_level;        /* enum log_level */
    int log_format;       /* enum log_format */
    int64_t body_limit_bytes;
    int64_t safetensors_limit_bytes;
    int64_t memory_budget_bytes;
    int64_t connection_limit;
    int64_t connection_timeout_us;
    int64_t body_timeout_us;
    int64_t reply_timeout_us;
    int64_t drain_timeout_us;
    int64_t default_deadline_us;
    int64_t rollout_timeout_us;
    int64_t wait_get_us;
    int64_t max_staleness; /* -1: none */
    int policy_mode;       /* enum store_update_mode */
    int64_t policy_deadline_us;
    int64_t sampling_n;
    int64_t sampling_max_tokens;
    double sampling_temperature;
    double sampling_top_p;
    int64_t max_rollouts_per_batch;
    int64_t batches_limit;
    struct engine_settings *engines;
    size_t engine_count;
    int64_t engine_connect_timeout_us;
    int64_t engine_attempts;
    int64_t engine_backoff_min_us;
    int64_t engine_backoff_max_us;
    int64_t engine_pause_max_us;
    int64_t engine_down_timeout_us;
    double engine_retry_ratio;
    char *engine_token_dir;   /* NULL: none */
    int engine_probe_samples; /* 0 or 1 */
    int64_t engine_check_interval_us;
    int64_t verify_timeout_us;
    int64_t verify_queue;
    int64_t crashes_keep; /* files */
    int64_t crashes_keep_bytes;
    double crashes_alarm; /* share; 0: none */
    int64_t crashes_window;
    int64_t scan_budget; /* rows */
    int64_t commit_rows;
    int64_t commit_delay_us;
    int durability; /* enum durability */
};

/* What the command line asks for besides serving. */
struct settings_run {
    bool check;
    bool version;
    bool help;
};

#define SETTINGS_MESSAGE_BYTES 1024

/* 0, or -1 with one line (no line feed) in ret_message. With --help or --version nothing is loaded or checked. Either
 * way the settings may be finished afterwards. Reads the file, the token files and environ; changes nothing. */
int settings_load(int argc, char **argv, struct settings *ret_settings, struct settings_run *ret_run,
                  char ret_message[SETTINGS_MESSAGE_BYTES]);
void settings_finish(struct settings *settings);

/* Each variable that begins like those of settings and is none, with the one that was probably meant, or NULL.
 * ROLLOUTD_TOKEN_NAME holds the key of an engine and is known. Reads environ; both texts live until `found` returns. */
void settings_find_unknown(void (*found)(const char *name, const char *nearest));

void settings_print_help(FILE *out); /* arguments and settings */

#endif
