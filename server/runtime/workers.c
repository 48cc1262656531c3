#include "server/runtime/workers.h"

#include "server/base/cleanup.h"
#include "server/base/log.h"
#include "server/store/store.h"

#include <pthread.h>
#include <stdatomic.h>

struct lane {
    struct job *first;
    struct job **last;
    atomic_size_t queued;
    size_t running;
    size_t running_max;
};

struct workers {
    struct loop *loop;
    struct store *store;
    pthread_t *threads;
    size_t thread_count;
    size_t bulk_max; /* threads for all lanes but LANE_REQUEST */
    size_t queue_limit;

    pthread_mutex_t lock;
    pthread_cond_t filled;
    struct lane lanes[LANE_COUNT];
    size_t turn;        /* the lane that is looked at first */
    size_t idle;        /* threads that wait */
    size_t unsignalled; /* loop thread: submitted since the last flush */
    bool ending;
};

/* --- lanes, under the lock --- */

static size_t bulk_running(const struct workers *workers)
{
    size_t running = 0;
    for (size_t i = LANE_REQUEST + 1; i < LANE_COUNT; i++)
        running += workers->lanes[i].running;
    return running;
}

static bool may_run(const struct workers *workers, size_t which)
{
    const struct lane *lane = &workers->lanes[which];
    if (!lane->first || lane->running >= lane->running_max)
        return false;
    return which == LANE_REQUEST || bulk_running(workers) < workers->bulk_max;
}

/* LANE_COUNT: there is nothing that may run now. */
static size_t next_lane(const struct workers *workers)
{
    for (size_t i = 0; i < LANE_COUNT; i++) {
        size_t which = (workers->turn + i) % LANE_COUNT;
        if (may_run(workers, which))
            return which;
    }
    return LANE_COUNT;
}

static struct job *take_first(struct workers *workers, size_t which)
{
    struct lane *lane = &workers->lanes[which];
    struct job *job = lane->first;
    lane->first = job->next;
    if (!lane->first)
        lane->last = &lane->first;
    lane->queued--;
    lane->running++;
    workers->turn = which + 1;
    return job;
}

/* done: the lane of the job that this thread has run; LANE_COUNT: none. */
static struct job *take_job(struct workers *workers, size_t done)
{
    struct job *job = NULL;
    size_t which;
    pthread_mutex_lock(&workers->lock);
    if (done < LANE_COUNT)
        workers->lanes[done].running--;
    while ((which = next_lane(workers)) == LANE_COUNT && !workers->ending) {
        workers->idle++;
        pthread_cond_wait(&workers->filled, &workers->lock);
        workers->idle--;
    }
    if (which < LANE_COUNT)
        job = take_first(workers, which);
    if (workers->idle > 0 && next_lane(workers) < LANE_COUNT)
        pthread_cond_signal(&workers->filled); /* the job that has ended may have made room for more than one */
    pthread_mutex_unlock(&workers->lock);
    return job;
}

static void deliver_job(struct loop_message *message)
{
    struct job *job = (struct job *)message;
    job->done(job);
}

/* NULL: it cannot be opened now. refused: so it was before, which was said then. */
static struct store_reader *open_reader(struct workers *workers, bool *refused)
{
    char message[STORE_MESSAGE_BYTES];

    if (!workers->store)
        return NULL;
    struct store_reader *reader = store_reader_create(workers->store, message);

    if (!reader && !*refused)
        log_event(LOG_LEVEL_ERROR, "worker without a read connection", "why", message, NULL);
    else if (reader && *refused)
        log_event(LOG_LEVEL_INFO, "worker has its read connection after all", NULL);
    *refused = !reader;
    return reader;
}

static void *work(void *arg)
{
    struct workers *workers = arg;
    bool refused = false;
    struct store_reader *reader = open_reader(workers, &refused);

    size_t lane = LANE_COUNT;
    for (struct job *job; (job = take_job(workers, lane));) {
        lane = job->lane;
        if (!reader)
            reader = open_reader(workers, &refused);
        job->run(job, reader);
        job->message.deliver = deliver_job;
        loop_post(workers->loop, &job->message);
    }
    store_reader_destroy(reader);
    return NULL;
}

static void init_lanes(struct workers *workers, const struct workers_limits *limits)
{
    size_t threads = limits->threads + limits->readers;
    workers->bulk_max = threads > 1 ? threads - 1 : 1;
    for (size_t i = 0; i < LANE_COUNT; i++) {
        workers->lanes[i].last = &workers->lanes[i].first;
        workers->lanes[i].running_max = threads;
    }
    workers->lanes[LANE_HEAVY].running_max = limits->threads > 1 ? limits->threads - 1 : 1;
    workers->lanes[LANE_REPORT].running_max = 1;
    if (limits->readers > 0)
        workers->lanes[LANE_RECORD].running_max = limits->readers;
}

struct workers *workers_create(struct loop *loop, struct store *store, const struct workers_limits *limits)
{
    struct workers *workers = xcalloc(1, sizeof(*workers));
    size_t threads = limits->threads + limits->readers;
    workers->loop = loop;
    workers->store = store;
    workers->queue_limit = limits->queue_limit;
    init_lanes(workers, limits);
    workers->threads = xcalloc(threads, sizeof(pthread_t));
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->filled, NULL);
    while (workers->thread_count < threads &&
           pthread_create(&workers->threads[workers->thread_count], NULL, work, workers) == 0)
        workers->thread_count++;
    if (workers->thread_count < threads) {
        workers_destroy(workers);
        return NULL;
    }
    return workers;
}

void workers_destroy(struct workers *workers)
{
    if (!workers)
        return;
    pthread_mutex_lock(&workers->lock);
    workers->ending = true;
    pthread_cond_broadcast(&workers->filled);
    pthread_mutex_unlock(&workers->lock);
    for (size_t i = 0; i < workers->thread_count; i++)
        pthread_join(workers->threads[i], NULL);
    pthread_cond_destroy(&workers->filled);
    pthread_mutex_destroy(&workers->lock);
    free(workers->threads);
    free(workers);
}

void workers_submit_reserved(struct workers *workers, struct job *job)
{
    struct lane *lane = &workers->lanes[job->lane];
    job->next = NULL;
    pthread_mutex_lock(&workers->lock);
    *lane->last = job;
    lane->last = &job->next;
    lane->queued++;
    workers->unsignalled++;
    pthread_mutex_unlock(&workers->lock);
}

void workers_flush(struct workers *workers)
{
    if (workers->unsignalled == 0)
        return;
    pthread_mutex_lock(&workers->lock);
    size_t wanted = workers->unsignalled < workers->idle ? workers->unsignalled : workers->idle;
    pthread_mutex_unlock(&workers->lock);
    workers->unsignalled = 0;
    for (size_t i = 0; i < wanted; i++)
        pthread_cond_signal(&workers->filled);
}

bool workers_submit(struct workers *workers, struct job *job)
{
    if (workers->lanes[job->lane].queued >= workers->queue_limit)
        return false;
    workers_submit_reserved(workers, job);
    return true;
}

size_t workers_queued(const struct workers *workers)
{
    size_t queued = 0;
    for (size_t i = 0; i < LANE_COUNT; i++)
        queued += workers->lanes[i].queued;
    return queued;
}
