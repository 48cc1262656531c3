#include "server/workers.h"

#include "server/base/cleanup.h"
#include "server/base/log.h"
#include "server/store/store.h"

#include <pthread.h>
#include <stdatomic.h>

struct workers {
    struct loop *loop;
    struct store *store;
    pthread_t *threads;
    size_t thread_count;
    size_t queue_limit;

    pthread_mutex_t lock;
    pthread_cond_t filled;
    struct job *first;
    struct job **last;
    atomic_size_t queued;
    size_t idle;        /* threads that wait */
    size_t unsignalled; /* loop thread: submitted since the last flush */
    bool ending;
};

static struct job *take_job(struct workers *workers)
{
    pthread_mutex_lock(&workers->lock);
    while (!workers->first && !workers->ending) {
        workers->idle++;
        pthread_cond_wait(&workers->filled, &workers->lock);
        workers->idle--;
    }
    struct job *job = workers->first;
    if (job) {
        workers->first = job->next;
        if (!workers->first)
            workers->last = &workers->first;
        workers->queued--;
    }
    pthread_mutex_unlock(&workers->lock);
    return job;
}

static void deliver_job(struct loop_message *message)
{
    struct job *job = (struct job *)message;
    job->done(job);
}

static void *work(void *arg)
{
    struct workers *workers = arg;
    char message[STORE_MESSAGE_BYTES];
    struct store_reader *reader = store_reader_create(workers->store, message);

    if (!reader)
        log_event(LOG_LEVEL_ERROR, "worker without a read connection", "why", message, NULL);
    for (struct job *job; (job = take_job(workers));) {
        job->run(job, reader);
        job->message.deliver = deliver_job;
        loop_post(workers->loop, &job->message);
    }
    store_reader_destroy(reader);
    return NULL;
}

struct workers *workers_create(struct loop *loop, struct store *store, size_t threads, size_t queue_limit)
{
    struct workers *workers = xcalloc(1, sizeof(*workers));
    workers->loop = loop;
    workers->store = store;
    workers->queue_limit = queue_limit;
    workers->last = &workers->first;
    workers->threads = xcalloc(threads, sizeof(pthread_t));
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->filled, NULL);
    while (workers->thread_count < threads &&
           pthread_create(&workers->threads[workers->thread_count], NULL, work, workers) == 0)
        workers->thread_count++;
    if (workers->thread_count == 0) {
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
    job->next = NULL;
    pthread_mutex_lock(&workers->lock);
    *workers->last = job;
    workers->last = &job->next;
    workers->queued++;
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
    if (workers->queued >= workers->queue_limit)
        return false;
    workers_submit_reserved(workers, job);
    return true;
}

size_t workers_queued(const struct workers *workers)
{
    return workers->queued;
}
