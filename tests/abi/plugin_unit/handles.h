/* handles.h: shortcuts to the table of live objects, for its tests. */
#ifndef KPT_UNIT_HANDLES_H
#define KPT_UNIT_HANDLES_H

#include <gtest/gtest.h>

#include <string>

#include "tests/abi/plugin_unit/private.h"

inline kpt_handle make_handle(const kpti_handle_kind *kind, void *object, const char *text = "")
{
    kpt_handle handle = 0;
    EXPECT_EQ(kpti_handle_new(kind, object, text, &handle), KPT_OK);
    return handle;
}

/* In and out for good, as destroy does. */
inline kpt_status end_handle(kpt_handle handle, const kpti_handle_kind *kind)
{
    kpti_call call;
    kpt_status status = kpti_call_begin(&call, handle, kind);
    return status == KPT_OK ? kpti_call_end(&call) : status;
}

inline std::string text_of(kpt_handle handle)
{
    char buf[sizeof(kpti_error) + 1] = "";
    EXPECT_EQ(kpti_handle_last_error(handle, buf, sizeof buf, nullptr), KPT_OK);
    return buf;
}

#endif
