#include "server/api/routes.h"

#include "server/api/batches.h"
#include "server/api/engines.h"
#include "server/api/objective.h"
#include "server/api/policy.h"
#include "server/api/records.h"
#include "server/api/service.h"
#include "server/api/verify.h"

#include "server/base/cleanup.h"

static const struct route rows[] = {
    {"GET", "/healthz", ROUTE_OPEN | ROUTE_ALWAYS, NULL, get_health},
    {"GET", "/readyz", ROUTE_OPEN | ROUTE_ALWAYS, NULL, get_ready},
    {"GET", "/metrics", ROUTE_ALWAYS, NULL, get_metrics},
    {"GET", "/openapi.yaml", ROUTE_ALWAYS, NULL, get_openapi},

    {"POST", "/v1/batches", ROUTE_CREATES | ROUTE_BODY | ROUTE_HASHED, parse_batch, create_batch},
    {"GET", "/v1/batches", ROUTE_RECORD, list_batches, NULL},
    {"GET", "/v1/batches/{id}", 0, NULL, get_batch},
    {"DELETE", "/v1/batches/{id}", 0, NULL, cancel_batch},
    {"GET", "/v1/batches/{id}/groups", ROUTE_RECORD, list_batch_groups, NULL},
    {"GET", "/v1/batches/{id}/request", ROUTE_RECORD, get_batch_request, NULL},

    {"POST", "/v1/score", ROUTE_CREATES | ROUTE_BODY | ROUTE_HASHED, parse_score, create_batch},
    {"POST", "/v1/verify", ROUTE_CREATES | ROUTE_BODY, verify_parse, verify_on_loop},
    {"GET", "/v1/verifiers", 0, list_verifiers, NULL},

    {"POST", "/v1/objective", ROUTE_BODY | ROUTE_SAFETENSORS, objective_handler, record_objective},
    {"GET", "/v1/presets", 0, presets_handler, NULL},

    {"GET", "/v1/rollouts", ROUTE_RECORD, list_rollouts, NULL},
    {"GET", "/v1/rollouts/{id}", ROUTE_RECORD, get_rollout, NULL},
    {"GET", "/v1/groups/{id}", ROUTE_RECORD, get_group, NULL},
    {"GET", "/v1/runs", ROUTE_RECORD, list_runs, NULL},
    {"GET", "/v1/runs/{run}", ROUTE_RECORD, get_run, NULL},
    {"POST", "/v1/runs/{run}/attach", ROUTE_CREATES | ROUTE_BODY | ROUTE_HASHED, parse_attach, attach_run},
    {"GET", "/v1/runs/{run}/objective", 0, list_objective_sums, NULL},
    {"PUT", "/v1/runs/{run}/policy", ROUTE_CREATES | ROUTE_BODY | ROUTE_HASHED, parse_policy, declare_policy},
    {"POST", "/v1/runs/{run}/policy/begin", ROUTE_CREATES | ROUTE_BODY | ROUTE_HASHED, parse_policy_begin,
     begin_policy},
    {"POST", "/v1/runs/{run}/policy/commit", ROUTE_BODY | ROUTE_NO_BODY | ROUTE_HASHED, parse_policy_end,
     commit_policy},
    {"POST", "/v1/runs/{run}/policy/cancel", ROUTE_BODY | ROUTE_NO_BODY | ROUTE_HASHED, parse_policy_end,
     cancel_policy},
    {"GET", "/v1/pending", 0, NULL, get_pending},

    {"GET", "/v1/engines", 0, NULL, list_engines},
    {"GET", "/v1/engines/{name}", 0, NULL, get_engine},
    {"PUT", "/v1/engines/{name}", ROUTE_CREATES | ROUTE_BODY, parse_engine, put_engine},
    {"DELETE", "/v1/engines/{name}", 0, NULL, delete_engine},
};

const struct route_table routes = {rows, ARRAY_LENGTH(rows)};

struct http *routes_serve(struct server *server, char ret_url[128], char message[256])
{
    const struct http_options options = {.settings = server->settings,
                                         .shares = server->shares,
                                         .loop = server->loop,
                                         .workers = server->workers,
                                         .trim = &server->trim,
                                         .token = &server->token,
                                         .routes = routes,
                                         .owner = server};
    return http_create(&options, ret_url, message);
}
