/* qualified_name.h: the name of a function as people see it: "file.py(8): Outer.inner". Chrome JSON has the plain name in its
 * place, "file.py(8): inner", because readers of Kineto's files parse it. */
#ifndef KPTI_WRITERS_FORMAT_QUALIFIED_NAME_H
#define KPTI_WRITERS_FORMAT_QUALIFIED_NAME_H

#include "core/base/batch_records.h"

/* Longer names stay plain. */
enum { KPTI_MAX_QUALIFIED = 4096 };

/* Returns the display of NAME with its qualified name in place of the function's, in SPACE of KPTI_MAX_QUALIFIED bytes; or the
 * display itself, if the function has no other qualified name. */
static inline kpt_str kpti_qualified_name(const kpt_name *name, char *space)
{
    const kpt_str shown = kpti_shown_name(name);
    const kpt_str function = name->function;
    const kpt_str qualname = kpti_function_name(name);
    size_t before;
    if (!name->file.size || qualname.size <= function.size || shown.size < function.size ||
        shown.size - function.size + qualname.size > KPTI_MAX_QUALIFIED)
        return shown;
    before = (size_t)(shown.size - function.size);
    if (function.size && memcmp(shown.data + before, function.data, (size_t)function.size) != 0)
        return shown;
    memcpy(space, shown.data, before);
    memcpy(space + before, qualname.data, (size_t)qualname.size);
    return (kpt_str){space, before + qualname.size};
}

#endif
