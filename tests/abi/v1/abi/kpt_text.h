/* kpt_text.h: convenience, not contract: statuses as words, strings made and compared. Nothing here
 * crosses the boundary, so it may change at any time. */
#ifndef KPT_TEXT_H
#define KPT_TEXT_H

#include "kpt_base.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline const char *kpt_status_name(kpt_status status)
{
    switch (status) {
    case KPT_OK:
        return "KPT_OK";
    case KPT_DECLINED:
        return "KPT_DECLINED";
    case KPT_E_INVALID:
        return "KPT_E_INVALID";
    case KPT_E_SIZE:
        return "KPT_E_SIZE";
    case KPT_E_STATE:
        return "KPT_E_STATE";
    case KPT_E_HANDLE:
        return "KPT_E_HANDLE";
    case KPT_E_BUSY:
        return "KPT_E_BUSY";
    case KPT_E_MEMORY:
        return "KPT_E_MEMORY";
    case KPT_E_UNSUPPORTED:
        return "KPT_E_UNSUPPORTED";
    case KPT_E_LIMIT:
        return "KPT_E_LIMIT";
    case KPT_E_IO:
        return "KPT_E_IO";
    case KPT_E_INTERNAL:
        return "KPT_E_INTERNAL";
    default:
        return "an unknown status";
    }
}

static inline kpt_str kpt_str_of(const char *text)
{
    kpt_str out;
    out.data = text;
    out.size = text ? strlen(text) : 0;
    return out;
}

static inline int kpt_str_is(kpt_str str, const char *text)
{
    size_t size = strlen(text);
    return str.size == size && (size == 0 || memcmp(str.data, text, size) == 0);
}

#ifdef __cplusplus
}
#endif
#endif
