/* Is this build instrumented by a sanitizer that maps memory on its own? */
#ifndef SERVER_BASE_SANITIZER_H
#define SERVER_BASE_SANITIZER_H

#ifndef __has_feature
#define __has_feature(feature) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) ||               \
    __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define UNDER_SANITIZER 1
#else
#define UNDER_SANITIZER 0
#endif

#endif
