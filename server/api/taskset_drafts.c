/* Drafts of task sets that were not frozen: dropped bit by bit, between other operations. */
#include "server/api/server.h"
#include "server/api/tasksets_private.h"
#include "server/base/cleanup.h"
#include "server/base/log.h"
#include "server/record/store_desk.h"

struct draft_drop {
    struct store_errand errand;
    struct server *server;
    struct draft_drop *next; /* of those on their way */
};

static void forget(struct draft_drop *drop)
{
    struct draft_drop **place = &drop->server->draft_drops;
    while (*place != drop)
        place = &(*place)->next;
    *place = drop->next;
    free(drop);
}

static void dropped(struct store_op *op)
{
    struct draft_drop *drop = op->context;
    if (store_desk_send_again(&drop->errand))
        return;
    if (op->status == STORE_OK && op->drop_drafts.more) {
        store_desk_send(&drop->errand);
        return;
    }
    if (op->status != STORE_OK)
        log_event(LOG_LEVEL_ERROR, "the draft of a task set stays on record until the next start", "why", op->message,
                  NULL);
    forget(drop);
}

void drafts_drop(struct server *server, int64_t from_seq, int64_t to_seq)
{
    struct draft_drop *drop = xcalloc(1, sizeof(*drop));
    *drop = (struct draft_drop){.errand = {.op = {.kind = STORE_DROP_DRAFTS,
                                                  .done = dropped,
                                                  .context = drop,
                                                  .drop_drafts = {.from_seq = from_seq, .to_seq = to_seq}},
                                           .loop = server->loop,
                                           .store = server->store},
                                .server = server,
                                .next = server->draft_drops};
    server->draft_drops = drop;
    store_desk_send(&drop->errand);
}

void server_drop_old_drafts(struct server *server)
{
    int64_t last = store_last_old_draft(server->store);
    if (last > 0)
        drafts_drop(server, 0, last);
}
