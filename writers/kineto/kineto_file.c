#include "writers/kineto/kineto_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/file_descriptor.h"
#include "writers/encode/json_scan.h"

/* How much of the file's beginning and end is read, at first and at most. */
enum { FIRST_WINDOW = 64 * 1024, MAX_WINDOW = 64 * 1024 * 1024 };

/* --- reading ---------------------------------------------------------------------------------- */

int kpti_kineto_read(const kpti_kineto_file *file, char *buffer, size_t size, uint64_t from)
{
    while (size) {
        ssize_t count;
        if (!kpti_file_id_is(&file->id, file->fd)) return EBADF;
        count = pread(file->fd, buffer, size, (off_t)from);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return errno;
        if (count == 0) return EIO; /* shorter than before */
        buffer += count;
        size -= (size_t)count;
        from += (uint64_t)count;
    }
    return 0;
}

int kpti_kineto_copy(const kpti_kineto_file *file, kpti_out_file *out, uint64_t from, uint64_t to)
{
    while (from < to) {
        size_t step = to - from < FIRST_WINDOW ? (size_t)(to - from) : FIRST_WINDOW;
        char *capacity = kpti_out_reserve(out, step);
        int error = kpti_kineto_read(file, capacity, step, from);
        if (error) return error;
        kpti_out_wrote(out, capacity + step);
        from += step;
    }
    return 0;
}

uint64_t kpti_kineto_put_head(const kpti_kineto_file *file, kpti_out_file *out)
{
    if (!file->head.text) return 0;
    kpti_out_put(out, file->head.text, file->head.size);
    return file->events_begin;
}

/* Parses the bytes from BEGIN to END, which are at OFFSET of the file. Returns whether they were enough. */
typedef int (*look_fn)(kpti_kineto_file *file, const char *begin, const char *end, uint64_t offset);

/* Calls LOOK with more and more of the file, from its beginning or up to its end. Returns 0 or an errno;
 * EBADMSG if the last call failed. */
static int look_at(kpti_kineto_file *file, int to_the_end, look_fn look)
{
    for (uint64_t window = FIRST_WINDOW;; window *= 8) {
        uint64_t size = window < file->size ? window : file->size;
        uint64_t offset = to_the_end ? file->size - size : 0;
        char *buffer = kpti_heap_take(&file->heap, (size_t)size + 1);
        int error = buffer ? kpti_kineto_read(file, buffer, (size_t)size, offset) : ENOMEM;
        int found = !error && look(file, buffer, buffer + size, offset);
        kpti_heap_give(&file->heap, buffer, (size_t)size + 1);
        if (error || found) return error;
        if (size == file->size || window >= MAX_WINDOW) return EBADMSG;
    }
}

/* --- the head: members of one object, up to the list of events -------------------------------- */

/* Returns whether a list has items. Returns 1 if the value is not a list, since it may mean anything. */
static int has_items(const char *at, const char *end)
{
    at = kpti_json_skip_sign(at, end, '[');
    return !at || !kpti_json_skip_sign(at, end, ']');
}

static int look_at_head(kpti_kineto_file *file, const char *begin, const char *end, uint64_t offset)
{
    int has_base = 0;
    const char *at = kpti_json_skip_sign(begin, end, '{');
    file->has_devices = 1; /* until the head contains an empty list of them */
    while (at) {
        kpti_json_member member;
        const char *key = kpti_json_skip_space(at, end);
        const char *key_end = kpti_json_skip_string(key, end);
        /* the list is not complete yet */
        if (key_end && kpti_json_is(key, key_end, "traceEvents")) {
            at = kpti_json_skip_sign(key_end, end, ':');
            at = at ? kpti_json_skip_sign(at, end, '[') : NULL;
            if (at) file->events_begin = offset + (uint64_t)(at - begin);
            return has_base && at;
        }
        at = kpti_json_skip_member(at, end, &member);
        if (at && kpti_json_is(key, key_end, "baseTimeNanoseconds"))
            has_base = kpti_json_whole(member.value, at, &file->base_ns);
        if (at && kpti_json_is(key, key_end, "deviceProperties"))
            file->has_devices = has_items(member.value, at);
        if (at) at = kpti_json_skip_sign(at, end, ',');
    }
    return 0;
}

/* As look_at_head, but repairs a head that is not valid JSON. */
static int look_at_any_head(kpti_kineto_file *file, const char *begin, const char *end,
                            uint64_t offset)
{
    size_t size;
    if (look_at_head(file, begin, end, offset)) return 1;
    size = kpti_kineto_head_mend(&file->head, &file->heap, begin, end);
    if (!size) return 0;
    if (look_at_head(file, file->head.text, file->head.text + file->head.size, 0)) {
        file->events_begin = size;
        return 1;
    }
    kpti_kineto_head_free(&file->head, &file->heap);
    return 0;
}

/* --- the tail: the last event, the end of the list, further members --------------------------- */

static const char last_event[] = "\"Record Window End\"";

/* Skips from AT, after a member of an object, to the end of the object. Returns the position after its bracket,
 * or NULL. */
static const char *skip_to_end_of_object(const char *at, const char *end)
{
    const char *next;
    while ((next = kpti_json_skip_sign(at, end, ',')) != NULL) {
        kpti_json_member member;
        at = kpti_json_skip_member(next, end, &member);
        if (!at) return NULL;
    }
    return kpti_json_skip_sign(at, end, '}');
}

/* Returns the end of the event whose name ends at AT, if it is the last event and the trace ends after it. Else
 * returns NULL. */
static const char *end_of_last_event(const char *at, const char *end)
{
    const char *event = skip_to_end_of_object(at, end);
    at = event ? kpti_json_skip_sign(event, end, ']') : NULL;
    if (at) at = skip_to_end_of_object(at, end);
    return at && kpti_json_skip_space(at, end) == end ? event : NULL;
}

/* Kineto ends its list with four closing events. This text is in the first of them, the span of the whole
 * trace. Readers look for the closing events at the end (torch's own test_basic_chrome_trace), so our events
 * are inserted before them. If any other event, such as one of a GPU, is among them, it would not be searched
 * for kernels; our events are then inserted after all events. */
static const char first_closing_event[] = "\"cat\": \"Trace\"";
enum { CLOSING_EVENTS = 4 };

static int is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Returns how many complete objects, separated by commas, fill all of AT to END, or 0 if there is anything
 * else. */
static int count_objects(const char *at, const char *end)
{
    for (int count = 1; at && *at == '{'; count++) {
        at = kpti_json_skip_value(at, end);
        if (at == end) return count;
        if (at) at = kpti_json_skip_sign(at, end, ',');
        if (at) at = kpti_json_skip_space(at, end);
        if (at == end) return 0;
    }
    return 0;
}

/* Returns the end of the last event before the closing events. Returns END, the end of the list, if the closing
 * events are missing or there is no event before them. */
static const char *end_of_other_events(const char *begin, const char *end)
{
    const size_t size = sizeof first_closing_event - 1;
    const char *at = (size_t)(end - begin) > size ? end - size : begin;
    while (at > begin && memcmp(at, first_closing_event, size) != 0)
        at--;
    while (at > begin && *at != '{')
        at--;
    if (at == begin || count_objects(at, end) != CLOSING_EVENTS) return end;
    while (at > begin && is_space(at[-1]))
        at--;
    if (at == begin || at[-1] != ',') return end;
    at--;
    while (at > begin && is_space(at[-1]))
        at--;
    return at > begin && at[-1] == '}' ? at : end;
}

static int look_at_tail(kpti_kineto_file *file, const char *begin, const char *end, uint64_t offset)
{
    const size_t size = sizeof last_event - 1;
    for (const char *at = end; at > begin; at--) {
        const char *found;
        if ((size_t)(end - at) < size || *at != '"' || memcmp(at, last_event, size) != 0) continue;
        found = end_of_last_event(at + size, end);
        if (!found) continue;
        found = end_of_other_events(begin, found);
        file->events_end = offset + (uint64_t)(found - begin);
        return 1;
    }
    return 0;
}

/* torch numbers its events in the order in which they are written. Events without a number may follow. */
static int look_at_numbers(kpti_kineto_file *file, const char *begin, const char *end,
                           uint64_t offset)
{
    static const char key[] = "\"Ev Idx\":";
    int found = 0;
    const char *at = begin;
    while ((at = memmem(at, (size_t)(end - at), key, sizeof key - 1)) != NULL) {
        const char *number = kpti_json_skip_space(at + sizeof key - 1, end);
        const char *behind = number;
        int64_t index;
        while (behind < end && *behind >= '0' && *behind <= '9')
            behind++;
        at = behind;
        if (!kpti_json_whole(number, behind, &index)) continue;
        if ((uint64_t)index >= file->next_index) file->next_index = (uint64_t)index + 1;
        found = 1;
    }
    return found || offset == 0;
}

/* --- the whole file --------------------------------------------------------------------------- */

static int look_at_all(kpti_kineto_file *file, const char **why)
{
    int error = look_at(file, 0, look_at_any_head);
    *why = "this is not a Kineto trace with baseTimeNanoseconds: the file was not changed";
    if (error) return error;
    *why = "this trace does not end like a Kineto trace: the file was not changed";
    error = look_at(file, 1, look_at_tail);
    if (error) return error;
    error = look_at(file, 1, look_at_numbers);
    return error == EBADMSG ? 0 : error; /* no number in the last window: begin at 0 */
}

int kpti_kineto_open(kpti_kineto_file *file, const char *path, const char **why)
{
    struct stat info;
    int error = 0;
    kpti_heap heap = file->heap;
    *file =
        (kpti_kineto_file){.fd = kpti_descriptor_open(path, O_RDONLY | O_NONBLOCK), .heap = heap};
    *why = "";
    if (file->fd < 0) return errno;
    if (fstat(file->fd, &info) != 0 || kpti_file_id_hold(file->fd, &file->id) != 0) error = errno;
    if (!error && !S_ISREG(info.st_mode)) {
        *why = "this is not a regular file: it was not changed";
        error = EBADMSG;
    }
    if (!error) {
        file->size = (uint64_t)info.st_size;
        error = look_at_all(file, why);
    }
    if (error) kpti_kineto_close(file);
    return error;
}

void kpti_kineto_close(kpti_kineto_file *file)
{
    kpti_kineto_head_free(&file->head, &file->heap);
    (void)kpti_descriptor_close(&file->id, file->fd);
}
