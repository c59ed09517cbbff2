#include "imports/import_notes.h"

#include <stdio.h>
#include <stdlib.h>

#include "writers/encode/json_scan.h"

enum { MAX_NUMBER = 64, MAX_NAME = 512 };

/* Finds the number INDEX in the object ARGS. Returns 0 if it has fewer. */
static int find_number(kpt_str args, uint32_t index, kpti_json_member *out)
{
    const char *const end = args.data + args.size;
    const char *at = args.size ? kpti_json_skip_sign(args.data, end, '{') : NULL;
    while (at) {
        const char *next = kpti_json_skip_member(at, end, out);
        if (!next) return 0;
        if ((*out->value == '-' || (*out->value >= '0' && *out->value <= '9')) && !index--)
            return 1;
        at = kpti_json_skip_sign(next, end, ',');
    }
    return 0;
}

static double read_number(const kpti_json_member *m)
{
    char text[MAX_NUMBER] = "";
    const size_t size = (size_t)(m->value_end - m->value);
    if (size >= sizeof text) return 0.0;
    memcpy(text, m->value, size);
    return strtod(text, NULL);
}

static uint32_t add_counter(kpti_notes *notes, kpti_import_texts *texts,
                            const kpti_trace_event *event, int64_t base_ns, uint32_t index)
{
    kpti_json_member member;
    kpti_json_member other;
    char name[MAX_NAME];
    kpti_note note = {.what = KPTI_NOTE_COUNTER, .ns = base_ns + event->start_ns};
    if (!find_number(event->args, index, &member)) return 0;
    note.value = read_number(&member);
    note.name = event->name;
    if (index || find_number(event->args, 1, &other)) { /* one of several */
        const int size = snprintf(
            name, sizeof name, "%.*s.%.*s",
            event->name.size < MAX_NAME / 2 ? (int)event->name.size : MAX_NAME / 2,
            event->name.data ? event->name.data : "",
            member.key_end - member.key < MAX_NAME / 2 ? (int)(member.key_end - member.key - 2)
                                                       : MAX_NAME / 2 - 2,
            member.key + 1);
        note.name = (kpt_str){name, size < MAX_NAME ? (uint64_t)size : MAX_NAME - 1};
    }
    note.name = kpti_import_text(texts, note.name);
    return note.name.data ? kpti_notes_add(notes, &note) : 0;
}

static uint32_t add_mark(kpti_notes *notes, kpti_import_texts *texts, const kpti_trace_event *event,
                         int64_t base_ns)
{
    kpti_note note = {.what = KPTI_NOTE_MARK, .ns = base_ns + event->start_ns};
    if (event->args.size > 2) note.args = (kpt_str){event->args.data + 1, event->args.size - 2};
    if (!kpti_note_args_are_json(note.args)) note.args = (kpt_str){NULL, 0};
    note.name = kpti_import_text(texts, event->name);
    return note.name.data ? kpti_notes_add(notes, &note) : 0;
}

uint32_t kpti_import_note(kpti_notes *notes, kpti_import_texts *texts,
                          const kpti_trace_event *event, int64_t base_ns, uint32_t index)
{
    if (event->phase == 'C') return add_counter(notes, texts, event, base_ns, index);
    return index ? 0 : add_mark(notes, texts, event, base_ns);
}
