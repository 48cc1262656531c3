#include "client/transport/resolver_private.h"
#include "server/base/cleanup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

/* Shared by the loop and the lookups; the last one that lets go frees it. */
struct mailbox {
    pthread_mutex_t lock;
    size_t holders;
    int event_fd;
    struct lookup *finished;
};

struct lookup {
    struct lookup *next;
    struct mailbox *mailbox;
    int (*look)(const char *host, const char *port, char *ret_addresses, size_t size_bytes);
    char *host;
    char *port;
    char addresses[RESOLVED_BYTES];
    bool failed;
};

struct resolver {
    const struct transport_host *host;
    int (*look)(const char *host, const char *port, char *ret_addresses, size_t size_bytes);
    void (*answered)(void *arg);
    void *arg;
    struct mailbox *mailbox;
    void *source;
    struct resolved_name *names;
};

/* --- the lookup's side --------------------------------------------------------------------------- */

static size_t append_address(char *out, size_t size_bytes, size_t at, const struct sockaddr *address)
{
    char text[INET6_ADDRSTRLEN];
    bool six = address->sa_family == AF_INET6;
    const void *bytes = six ? (const void *)&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr
                            : (const void *)&((const struct sockaddr_in *)(const void *)address)->sin_addr;
    int length;

    if (!inet_ntop(six ? AF_INET6 : AF_INET, bytes, text, sizeof(text)))
        return at;
    length = snprintf(out + at, size_bytes - at, "%s%s%s%s", at ? "," : "", six ? "[" : "", text, six ? "]" : "");
    if (length < 0 || (size_t)length >= size_bytes - at) {
        out[at] = '\0';
        return at;
    }
    return at + (size_t)length;
}

int resolver_getaddrinfo(const char *host, const char *port, char *ret_addresses, size_t size_bytes)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    int error = getaddrinfo(host, port, &hints, &found);
    size_t at = 0;

    *ret_addresses = '\0';
    if (error) {
        snprintf(ret_addresses, size_bytes, "%s", gai_strerror(error));
        return -1;
    }
    for (const struct addrinfo *one = found; one; one = one->ai_next)
        if (one->ai_family == AF_INET || one->ai_family == AF_INET6)
            at = append_address(ret_addresses, size_bytes, at, one->ai_addr);
    freeaddrinfo(found);
    if (!at)
        snprintf(ret_addresses, size_bytes, "no address");
    return at ? 0 : -1;
}

static void lookup_destroy(struct lookup *lookup)
{
    free(lookup->host);
    free(lookup->port);
    free(lookup);
}

static void mailbox_release(struct mailbox *mailbox)
{
    bool last;

    pthread_mutex_lock(&mailbox->lock);
    last = --mailbox->holders == 0;
    pthread_mutex_unlock(&mailbox->lock);
    if (!last)
        return;
    close(mailbox->event_fd);
    pthread_mutex_destroy(&mailbox->lock);
    while (mailbox->finished) {
        struct lookup *lookup = mailbox->finished;

        mailbox->finished = lookup->next;
        lookup_destroy(lookup);
    }
    free(mailbox);
}

static void *lookup_thread(void *arg)
{
    struct lookup *lookup = arg;
    struct mailbox *mailbox = lookup->mailbox;
    const uint64_t one = 1;
    ssize_t written;

    lookup->failed = lookup->look(lookup->host, lookup->port, lookup->addresses, sizeof(lookup->addresses)) != 0;
    pthread_mutex_lock(&mailbox->lock);
    lookup->next = mailbox->finished;
    mailbox->finished = lookup;
    written = write(mailbox->event_fd, &one,
                    sizeof(one)); /* can only fail when the counter is full: then it is readable anyway */
    (void)written;
    pthread_mutex_unlock(&mailbox->lock);
    mailbox_release(mailbox);
    return NULL;
}

/* --- the loop's side ----------------------------------------------------------------------------- */

static void look_up(struct resolver *resolver, struct resolved_name *name)
{
    struct lookup *lookup = xcalloc(1, sizeof(*lookup));
    pthread_attr_t attributes;
    pthread_t thread;
    int error;

    *lookup = (struct lookup){
        .mailbox = resolver->mailbox, .look = resolver->look, .host = xstrdup(name->host), .port = xstrdup(name->port)};
    pthread_mutex_lock(&resolver->mailbox->lock);
    resolver->mailbox->holders++;
    pthread_mutex_unlock(&resolver->mailbox->lock);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    error = pthread_create(&thread, &attributes, lookup_thread, lookup);
    pthread_attr_destroy(&attributes);
    name->state = error ? RESOLVED_NOT : RESOLVED_LOOKING; /* without a thread it is asked for again */
    if (!error)
        return;
    lookup_destroy(lookup);
    mailbox_release(resolver->mailbox);
}

static struct resolved_name *find_name(struct resolver *resolver, const char *host, const char *port)
{
    struct resolved_name *name = resolver->names;

    while (name && (strcmp(name->host, host) != 0 || strcmp(name->port, port) != 0))
        name = name->next;
    return name;
}

struct resolved_name *resolver_want(struct resolver *resolver, const char *host, const char *port)
{
    struct resolved_name *name = find_name(resolver, host, port);

    if (!name) {
        name = xcalloc(1, sizeof(*name));
        *name = (struct resolved_name){.next = resolver->names, .host = xstrdup(host), .port = xstrdup(port)};
        resolver->names = name;
    }
    if (name->state == RESOLVED_NOT || name->state == RESOLVED_FAILED)
        look_up(resolver, name);
    return name;
}

void resolver_distrust(struct resolved_name *name)
{
    if (name->state == RESOLVED_KNOWN)
        name->state = RESOLVED_NOT;
}

static void take_answers(void *arg, uint32_t events)
{
    struct resolver *resolver = arg;
    struct mailbox *mailbox = resolver->mailbox;
    struct lookup *finished;
    uint64_t count;
    ssize_t got = read(mailbox->event_fd, &count, sizeof(count));

    (void)events;
    (void)got;
    pthread_mutex_lock(&mailbox->lock);
    finished = mailbox->finished;
    mailbox->finished = NULL;
    pthread_mutex_unlock(&mailbox->lock);
    while (finished) {
        struct lookup *lookup = finished;
        struct resolved_name *name = find_name(resolver, lookup->host, lookup->port);

        finished = lookup->next;
        if (name && name->state == RESOLVED_LOOKING) {
            memcpy(name->addresses, lookup->addresses, sizeof(name->addresses));
            name->state = lookup->failed ? RESOLVED_FAILED : RESOLVED_KNOWN;
        }
        lookup_destroy(lookup);
    }
    resolver->answered(resolver->arg);
}

static struct mailbox *mailbox_create(void)
{
    struct mailbox *mailbox = xcalloc(1, sizeof(*mailbox));

    mailbox->holders = 1;
    mailbox->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&mailbox->lock, NULL);
    if (mailbox->event_fd >= 0)
        return mailbox;
    pthread_mutex_destroy(&mailbox->lock);
    free(mailbox);
    return NULL;
}

struct resolver *resolver_create(const struct transport_host *host,
                                 int (*lookup)(const char *host, const char *port, char *ret_addresses,
                                               size_t size_bytes),
                                 void (*answered)(void *arg), void *arg)
{
    struct mailbox *mailbox = mailbox_create();
    struct resolver *resolver;

    if (!mailbox)
        return NULL;
    resolver = xcalloc(1, sizeof(*resolver));
    *resolver = (struct resolver){.host = host,
                                  .look = lookup ? lookup : resolver_getaddrinfo,
                                  .answered = answered,
                                  .arg = arg,
                                  .mailbox = mailbox};
    resolver->source = host->watch(host->arg, mailbox->event_fd, EPOLLIN, take_answers, resolver);
    if (resolver->source)
        return resolver;
    mailbox_release(mailbox);
    free(resolver);
    return NULL;
}

void resolver_destroy(struct resolver *resolver)
{
    if (!resolver)
        return;
    resolver->host->unwatch(resolver->host->arg, resolver->source);
    mailbox_release(resolver->mailbox);
    while (resolver->names) {
        struct resolved_name *name = resolver->names;

        resolver->names = name->next;
        free(name->host);
        free(name->port);
        free(name);
    }
    free(resolver);
}
