#include "server/http/origin_private.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

enum { NAME_BYTES_MAX = 64, PORT_DEFAULT = 80 };

/* host[:port] taken apart. */
struct authority {
    char name[NAME_BYTES_MAX]; /* an IPv6 address without its brackets */
    bool ipv6;
    int port;
};

static bool read_port(struct text text, int *ret_port)
{
    *ret_port = PORT_DEFAULT;
    if (!text.length_bytes)
        return true;
    if (text.data[0] != ':' || text.length_bytes < 2 || text.length_bytes > 6)
        return false;
    *ret_port = 0;
    for (size_t i = 1; i < text.length_bytes; i++) {
        if (!isdigit((unsigned char)text.data[i]))
            return false;
        *ret_port = *ret_port * 10 + (text.data[i] - '0');
    }
    return *ret_port > 0 && *ret_port <= 65535;
}

static bool read_authority(struct text text, struct authority *ret_authority)
{
    ret_authority->ipv6 = text.length_bytes > 0 && text.data[0] == '[';
    const char *end = text.length_bytes ? memchr(text.data, ret_authority->ipv6 ? ']' : ':', text.length_bytes) : NULL;
    if (ret_authority->ipv6 && !end)
        return false;
    size_t begin = ret_authority->ipv6;
    size_t length = (end ? (size_t)(end - text.data) : text.length_bytes) - begin;
    size_t taken = begin + length + ret_authority->ipv6;
    if (!length || length >= NAME_BYTES_MAX || memchr(text.data + begin, '\0', length))
        return false;
    memcpy(ret_authority->name, text.data + begin, length);
    ret_authority->name[length] = '\0';
    return read_port((struct text){text.data + taken, text.length_bytes - taken}, &ret_authority->port);
}

/* An IPv4 address within an IPv6 one is that address. */
static bool read_address(const char *name, bool ipv6, struct in6_addr *ret_address)
{
    struct in_addr four;
    if (ipv6)
        return inet_pton(AF_INET6, name, ret_address) == 1;
    if (inet_pton(AF_INET, name, &four) != 1)
        return false;
    *ret_address = (struct in6_addr){.s6_addr = {[10] = 0xFF, [11] = 0xFF}};
    memcpy(&ret_address->s6_addr[12], &four, sizeof(four));
    return true;
}

static bool is_ours(const struct authority *authority, const char *listen_host)
{
    struct in6_addr address;
    struct in6_addr listened;
    if (!authority->ipv6 &&
        (strcasecmp(authority->name, "localhost") == 0 || strcasecmp(authority->name, "localhost.") == 0))
        return true;
    if (!read_address(authority->name, authority->ipv6, &address))
        return false;
    if (IN6_IS_ADDR_LOOPBACK(&address) || (IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == 127))
        return true;
    return read_address(listen_host, strchr(listen_host, ':') != NULL, &listened) &&
           IN6_ARE_ADDR_EQUAL(&address, &listened);
}

bool origin_host_is_ours(struct text host, const char *listen_host)
{
    struct authority authority;
    return read_authority(host, &authority) && is_ours(&authority, listen_host);
}

/* The authority of "http://host:port" or https, with or without a path; TEXT_NONE for anything else. */
static struct text authority_of(const char *url)
{
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        size_t bytes = strlen(schemes[i]);
        if (strncasecmp(url, schemes[i], bytes) == 0)
            return (struct text){url + bytes, strcspn(url + bytes, "/?#")};
    }
    return TEXT_NONE;
}

/* Either the very place that the request was sent to, or another name of it. */
static bool is_own_place(const char *url, const char *host, const char *listen_host, int listen_port)
{
    struct text text = authority_of(url);
    struct authority authority;
    if (!text.data || !read_authority(text, &authority))
        return false;
    if (host && strlen(host) == text.length_bytes && strncasecmp(host, text.data, text.length_bytes) == 0)
        return true;
    return authority.port == listen_port && is_ours(&authority, listen_host);
}

bool origin_is_ours(const struct origin_signs *signs, const char *listen_host, int listen_port)
{
    const char *site = signs->sec_fetch_site;
    if (site && strcasecmp(site, "same-origin") != 0 && strcasecmp(site, "none") != 0)
        return false;
    return !signs->origin || is_own_place(signs->origin, signs->host, listen_host, listen_port);
}

bool origin_referer_is_ours(const struct origin_signs *signs, const char *listen_host, int listen_port)
{
    return !signs->referer || is_own_place(signs->referer, signs->host, listen_host, listen_port);
}
