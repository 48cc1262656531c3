/* Shared by the files of the transport. */
#ifndef CLIENT_TRANSPORT_TRANSPORT_PRIVATE_H
#define CLIENT_TRANSPORT_TRANSPORT_PRIVATE_H

#include "client/transport/resolver_private.h"
#include "client/transport/transport.h"

#include <curl/curl.h>

enum transfer_place { AT_NOWHERE, AT_NAME, AT_MEANS, AT_CURL, AT_END };

struct transfer_list {
    struct transfer *first, *last;
};

struct known_url {
    struct known_url *next;
    char *base_url;
    bool usable;
    bool is_address; /* and no name */
    char *host;      /* curl's */
    char *port;
};

struct transport {
    struct transport_host host;
    char *user_agent;
    CURLM *multi;
    struct resolver *resolver;
    struct transfer_list waiting;  /* for a name */
    struct transfer_list held;     /* for a descriptor or a thread of our own */
    struct transfer_list running;  /* in curl */
    struct transfer_list finished; /* to be called back */
    struct known_url *urls;
    size_t count;
    size_t running_count;
    size_t descriptors_max;
    int64_t short_until_us; /* the system had nothing left: nothing is begun before; 0: it had */
    int64_t curl_timer_us;  /* NEVER_US: curl wants none */
};

struct transfer {
    struct transport *transport;
    struct transfer *previous, *next;
    enum transfer_place place;
    struct resolved_name *name; /* NULL: the URL holds an address */
    char *url;
    struct text body;
    struct buffer own_body; /* of transport_send() */
    bool is_post;
    int64_t deadline_us;
    int64_t connect_timeout_us;
    int64_t wait_until_us; /* for the name */
    int64_t held_us;       /* since when it is held; 0: it is not */
    int own_error;         /* errno of a socket that could not be made; 0: it could */
    CURL *easy;
    struct curl_slist *headers;
    struct curl_slist *resolve;
    char curl_problem[CURL_ERROR_SIZE];
    size_t header_bytes;
    bool header_ended;
    bool too_large;
    bool sent_again;
    struct transfer_reply reply;
    void (*done)(void *arg, struct transfer_reply *reply);
    void *arg;
};

/* transport/socket.c: curl's wishes to the host's loop. */
int transport_socket_wish(CURL *easy, curl_socket_t fd, int what, void *arg, void *known);
int transport_timer_wish(CURLM *multi, long timeout_ms, void *arg);
void transport_set_timer(struct transport *transport);

/* transport.c: after anything that may have ended a transfer. */
void transport_settle(struct transport *transport);
void transfer_fail(struct transfer *transfer, enum transfer_result result, const char *problem);

/* transport/setup.c: false with reply.problem set if the request cannot be made. */
bool transfer_setup(struct transfer *transfer, const struct transfer_request *request);
void transfer_set_limits(struct transfer *transfer, int64_t now_us);
bool transfer_set_addresses(struct transfer *transfer);
void transport_forget_urls(struct transport *transport);
/* transport/result.c: its result. */
void transfer_conclude(struct transfer *transfer, CURLcode code);

#endif
