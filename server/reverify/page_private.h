/* page: the rollouts of a reverification that are judged together, from the record to their frames, and from the verdicts
 * to the rows that come on record. */
#ifndef SERVER_REVERIFY_PAGE_PRIVATE_H
#define SERVER_REVERIFY_PAGE_PRIVATE_H

#include "server/reverify/reverify.h"
#include "server/store/store.h"
#include "server/verify/pool.h"

struct reverify_item {
    struct verify_job job; /* first */
    void *owner;
    const struct store_rollout *rollout; /* of the page */
    enum reward_missing missing;         /* the rule of its batch */
    struct buffer frame;
    bool running; /* the pool has it */

    struct buffer verdicts; /* JSON */
    struct store_verdict_flip *flips;
    size_t flip_count;
};

struct reverify_page {
    struct store_rollouts rollouts;
    struct reverify_item *items;
    struct store_judged *rows; /* [count]: after page_judge() */
    size_t count;
    char next[64]; /* cursor; "": it is the last page */
};

/* Worker. The page from `place` on ("": the first). A page without rollouts may have a next one. 0; -1: the record cannot
 * be read now. */
int page_read(struct store_reader *reader, const struct reverify_request *request, const char *place,
              struct reverify_page *ret_page);
/* Worker. All jobs are done, or have failed: fills the rows. */
void page_judge(struct reverify_page *page, const struct verifier_list *list);
void page_finish(struct reverify_page *page);

/* rows.c: what the verdicts of one rollout come to. */

/* The reward with these verdicts, by their weights, and recorded scores for verifiers that the list does not name. */
double row_reward(const struct store_rollout *rollout, const struct verifier_list *list, const struct verdict_set *set,
                  enum reward_missing missing);
/* Verdicts with another score than the first one of the same id; *ret_memory holds the texts of the old versions. Two
 * scores, or there is no flip. */
struct store_verdict_flip *row_flips(const struct store_rollout *rollout, const struct verifier_list *list,
                                     const struct verdict_set *set, size_t *ret_count);
void row_flips_free(struct store_verdict_flip *flips, size_t count);

#endif
