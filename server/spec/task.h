/* task: one line of a task set, read and checked. Any thread. */
#ifndef SERVER_SPEC_TASK_H
#define SERVER_SPEC_TASK_H

#include "server/http/call.h"
#include "server/store/taskset.h"

#include <jansson.h>

#define TASKSET_NAME_BYTES 128
#define TASK_NAME_BYTES 1024

/* The split that may be trained on, and that of a task that names none. */
extern const char task_split_train[];

/* 1 to TASKSET_NAME_BYTES of A-Z a-z 0-9 . _ - */
bool taskset_name_is_valid(struct text set);

/* Reads the line that is the call's body. 0, or -1 with the call refused, its path being the line's. The texts of
 * *ret_task belong to it: task_finish(), also after a refusal. */
int task_read(struct call *line, struct store_new_task *ret_task);
void task_finish(struct store_new_task *task);

/* A prompt or a reference of a task on record; the caller's. */
json_t *task_value(struct text json);

/* The task of a set on record, for the object at `path` (`groups[3]`). 0, or -1 with the call refused; *ret_task is to
 * be finished after both. */
int task_find(struct call *call, struct text set, struct text task, const char *path, struct store_tasks *ret_task);

#endif
