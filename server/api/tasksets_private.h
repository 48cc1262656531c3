/* Shared by the files of /v1/tasksets. */
#ifndef SERVER_API_TASKSETS_PRIVATE_H
#define SERVER_API_TASKSETS_PRIVATE_H

#include "server/base/json_write.h"
#include "server/store/taskset.h"

struct call;
struct server;

/* {"set","sha256","tasks","splits"[,"created_at"]}; created_at_us -1: without. */
void taskset_write(struct json_write *json, const struct store_taskset *set);
/* 0, or -1 with the call refused: the {set} of the path is no name of a set. */
int taskset_check_name(struct call *call);

/* Drops the drafts from one seq to another, in the background. Loop thread. */
void drafts_drop(struct server *server, int64_t from_seq, int64_t to_seq);

#endif
