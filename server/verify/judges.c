#include "server/verify/judges.h"

#include "server/base/nearest.h"
#include "server/verify/externals.h"

static int refuse_unknown(struct pool *engines, struct text name, struct verifier_problem *ret_problem)
{
    _cleanup_(name_list_finish) struct name_list names = {0};
    char advice[ADVICE_BYTES];

    for (size_t i = 0; i < pool_count(engines); i++)
        name_list_add(&names, text_of(named_pool_name(pool_at(engines, i)->pool)));
    if (names.count == 0)
        return verifier_refuse(ret_problem, "engine", "there is no engine that could judge");
    name_list_advise(name, &names, advice);
    return verifier_refuse(ret_problem, "engine", "no engine belongs to the pool \"%.*s\"; %s", (int)name.length_bytes,
                           name.data, advice);
}

static int check(struct pool *engines, struct text name, struct text own, struct verifier_problem *ret_problem)
{
    const struct named_pool *named = pool_named_find(engines, name);

    if (own.data && name.length_bytes == own.length_bytes && memcmp(name.data, own.data, own.length_bytes) == 0)
        return verifier_refuse(ret_problem, "engine",
                               "the pool \"%.*s\" samples this batch: the policy would grade itself; name another pool",
                               (int)name.length_bytes, name.data);
    return named && named_pool_count(named) > 0 ? 0 : refuse_unknown(engines, name, ret_problem);
}

int judges_check(struct pool *engines, const struct verifier_list *list, struct text own, size_t *ret_index,
                 struct verifier_problem *ret_problem)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct verifier_spec *spec = &list->specs[i];

        if (!spec->verifier->asks_engine || check(engines, option_text(spec->options, "engine"), own, ret_problem) == 0)
            continue;
        *ret_index = i;
        return -1;
    }
    return 0;
}

int judges_check_item(struct pool *engines, const struct verifier_list *list, size_t *ret_index,
                      struct verifier_problem *ret_problem)
{
    for (size_t i = 0; i < list->count; i++) {
        if (!list->specs[i].of_group)
            continue;
        *ret_index = i;
        return verifier_refuse(ret_problem, "name",
                               "the external \"%s\" judges whole groups (scope: group), and an item has none",
                               list->specs[i].external->name);
    }
    return judges_check(engines, list, TEXT_NONE, ret_index, ret_problem);
}
