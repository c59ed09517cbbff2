#include "writers/findings/name_class.h"

#include <string.h>

#include "abi/kpt_text.h"

static int equals(kpt_str text, const char *other)
{
    return text.size == strlen(other) && memcmp(text.data, other, (size_t)text.size) == 0;
}

static int ends_with(kpt_str text, const char *end)
{
    const size_t size = strlen(end);
    return text.size >= size && memcmp(text.data + text.size - size, end, size) == 0;
}

/* Returns the position behind the last PART in TEXT, or 0. */
static uint64_t behind(kpt_str text, const char *part)
{
    const size_t size = strlen(part);
    for (uint64_t at = text.size; at >= size; at--)
        if (memcmp(text.data + at - size, part, size) == 0) return at;
    return 0;
}

/* --- C functions ------------------------------------------------------------------------------ */

/* They have no file: their display name has the type, as in "<built-in method get of _queue.SimpleQueue object>" and
 * "<method 'get' of '_queue.SimpleQueue' objects>", or none, as in "<built-in function sleep>". */
static const struct c_function {
    const char *function;
    const char *type;
    kpti_name_class kind;
} c_functions[] = {
    {"acquire", "_thread.lock", KPTI_CLASS_LOCK},
    {"__enter__", "_thread.lock", KPTI_CLASS_LOCK},
    {"acquire_lock", "_thread.lock", KPTI_CLASS_LOCK},
    {"acquire", "_thread.RLock", KPTI_CLASS_LOCK},
    {"__enter__", "_thread.RLock", KPTI_CLASS_LOCK},
    {"get", "_queue.SimpleQueue", KPTI_CLASS_WORK},
    {"join", "_thread._ThreadHandle", KPTI_CLASS_WORK},
    {"sleep", NULL, KPTI_CLASS_SLEEP},
    {"select", NULL, KPTI_CLASS_POLL},
    {"poll", "select.epoll", KPTI_CLASS_POLL},
    {"poll", "select.poll", KPTI_CLASS_POLL},
    {"_accept", "_socket.socket", KPTI_CLASS_POLL},
    {"waitpid", NULL, KPTI_CLASS_PROCESS},
    {"wait4", NULL, KPTI_CLASS_PROCESS},
    {"waitid", NULL, KPTI_CLASS_PROCESS},
    {"collect", NULL, KPTI_CLASS_COLLECT},
};
enum { C_FUNCTIONS = sizeof c_functions / sizeof c_functions[0] };

/* Whether the display name has TYPE, or none if TYPE is NULL. */
static int has_type(kpt_str display, const char *type)
{
    const uint64_t at = behind(display, " of ");
    kpt_str rest;
    if (!type || !at) return !type && !at;
    rest = (kpt_str){display.data + at, display.size - at};
    if (rest.size && *rest.data == '\'') rest = (kpt_str){rest.data + 1, rest.size - 1};
    return rest.size > strlen(type) && memcmp(rest.data, type, strlen(type)) == 0 &&
           (rest.data[strlen(type)] == ' ' || rest.data[strlen(type)] == '\'');
}

static kpti_name_class class_of_c(const kpt_name *name)
{
    for (int i = 0; i < C_FUNCTIONS; i++)
        if (equals(name->function, c_functions[i].function) &&
            has_type(name->display, c_functions[i].type))
            return c_functions[i].kind;
    return KPTI_CLASS_OTHER;
}

/* --- functions of the library ------------------------------------------------------------------ */

static const struct library_function {
    const char *file;
    const char *function; /* NULL: all others of the file */
    kpti_name_class kind;
} library_functions[] = {
    {"/threading.py", "acquire", KPTI_CLASS_LIBRARY_LOCK},
    {"/threading.py", "__enter__", KPTI_CLASS_LIBRARY_LOCK},
    {"/threading.py", "wait", KPTI_CLASS_LIBRARY_WORK},
    {"/threading.py", "wait_for", KPTI_CLASS_LIBRARY_WORK},
    {"/threading.py", "join", KPTI_CLASS_LIBRARY_WORK},
    {"/threading.py", "start", KPTI_CLASS_LIBRARY_WORK},
    {"/threading.py", "_wait_for_tstate_lock", KPTI_CLASS_LIBRARY_WORK},
    {"/threading.py", "_shutdown", KPTI_CLASS_LIBRARY_WORK},
    {"/threading.py", NULL, KPTI_CLASS_LIBRARY},
    {"/queue.py", "get", KPTI_CLASS_LIBRARY_WORK},
    {"/queue.py", "put", KPTI_CLASS_LIBRARY_WORK},
    {"/queue.py", "join", KPTI_CLASS_LIBRARY_WORK},
    {"/queue.py", NULL, KPTI_CLASS_LIBRARY},
    {"/concurrent/futures/_base.py", "result", KPTI_CLASS_LIBRARY_WORK},
    {"/concurrent/futures/_base.py", "exception", KPTI_CLASS_LIBRARY_WORK},
    {"/concurrent/futures/_base.py", "as_completed", KPTI_CLASS_LIBRARY_WORK},
    {"/concurrent/futures/_base.py", "wait", KPTI_CLASS_LIBRARY_WORK},
    {"/concurrent/futures/_base.py", NULL, KPTI_CLASS_LIBRARY},
    {"/concurrent/futures/thread.py", "_worker", KPTI_CLASS_LIBRARY_WORK},
    {"/concurrent/futures/thread.py", "shutdown", KPTI_CLASS_LIBRARY_WORK},
    {"/concurrent/futures/thread.py", "run", KPTI_CLASS_WORK_ITEM},
    {"/concurrent/futures/thread.py", NULL, KPTI_CLASS_LIBRARY},
    {"/selectors.py", NULL, KPTI_CLASS_LIBRARY},
};
enum { LIBRARY_FUNCTIONS = sizeof library_functions / sizeof library_functions[0] };

/* Returns where the part of a path behind Python's library begins, or 0 if the file is not in it. */
static uint64_t in_library(kpt_str file)
{
    static const char part[] = "/lib/python3.";
    uint64_t at = behind(file, part);
    while (at && at < file.size && file.data[at] != '/') /* 3.13, or 3.13t */
        at++;
    return at && at < file.size ? at + 1 : 0;
}

static uint64_t in_packages(kpt_str file)
{
    const uint64_t at = behind(file, "/site-packages/");
    return at ? at : behind(file, "/dist-packages/");
}

static kpti_name_class class_of_python(const kpt_name *name)
{
    const uint64_t at = in_library(name->file);
    kpt_str rest;
    if (!at || in_packages(name->file)) return KPTI_CLASS_OTHER;
    rest = (kpt_str){name->file.data + at - 1, name->file.size - at + 1};
    for (int i = 0; i < LIBRARY_FUNCTIONS; i++) {
        const struct library_function *const known = &library_functions[i];
        if (equals(rest, known->file) &&
            (!known->function || equals(name->function, known->function)))
            return known->kind;
    }
    return KPTI_CLASS_OTHER;
}

kpti_name_class kpti_class_of(const kpt_name *name)
{
    return name->file.size ? class_of_python(name) : class_of_c(name);
}

/* --- modules ----------------------------------------------------------------------------------- */

/* Returns the first part of the path TEXT, without ".py". */
static kpt_str first_part(kpt_str text)
{
    uint64_t size = 0;
    while (size < text.size && text.data[size] != '/')
        size++;
    text.size = size;
    if (ends_with(text, ".py")) text.size -= 3;
    return text;
}

/* Returns "importlib" of "<frozen importlib._bootstrap>". */
static kpt_str frozen(kpt_str file)
{
    const uint64_t at = behind(file, "<frozen ");
    kpt_str name = {file.data + at, 0};
    while (at + name.size < file.size && !strchr(".>", name.data[name.size]))
        name.size++;
    return name;
}

kpt_str kpti_module_of(kpt_str file)
{
    uint64_t at = in_packages(file);
    int parts = 0;
    if (!at) at = in_library(file);
    if (at) return first_part((kpt_str){file.data + at, file.size - at});
    if (file.size > 8 && memcmp(file.data, "<frozen ", 8) == 0) return frozen(file);
    for (at = file.size; at; at--)
        if (file.data[at - 1] == '/' && ++parts == 2) break;
    return (kpt_str){file.data + at, file.size - at};
}
