#include "notes.h"

#include <string.h>

enum { FIRST_CAPACITY = 64 };

/* The texts of NOTE lie in one block. */
typedef struct kpti_note_entry {
    kpti_note note;
    char *texts;
} entry;

static entry *entry_of(const kpti_notes *notes, uint32_t number)
{
    return &notes->entries[number & (notes->capacity - 1)];
}

static int grow(kpti_notes *notes)
{
    uint32_t capacity = notes->capacity ? notes->capacity * 2 : FIRST_CAPACITY;
    entry *entries;
    if (capacity > KPTI_MOST_ITEMS) return 0;
    entries = kpti_heap_take(&notes->heap, capacity * sizeof *entries);
    if (!entries) return 0;
    for (uint32_t i = 0; i < notes->count; i++)
        entries[(notes->first + i) & (capacity - 1)] = *entry_of(notes, notes->first + i);
    kpti_heap_give(&notes->heap, notes->entries, notes->capacity * sizeof *notes->entries);
    notes->entries = entries;
    notes->capacity = capacity;
    return 1;
}

static size_t texts_bytes(const kpti_note *note)
{
    return (size_t)(note->name.size + note->args.size);
}

static kpt_str copy_text(char *to, kpt_str text)
{
    if (to && text.size) memcpy(to, text.data, (size_t)text.size);
    return (kpt_str){to, text.size};
}

uint32_t kpti_notes_add(kpti_notes *notes, const kpti_note *note)
{
    uint32_t number = kpti_notes_first(notes) + notes->count;
    char *texts = NULL;
    entry *added;
    if (number == UINT32_MAX || (notes->count == notes->capacity && !grow(notes))) return 0;
    if (texts_bytes(note)) {
        texts = kpti_heap_take(&notes->heap, texts_bytes(note));
        if (!texts) return 0;
    }
    notes->first = kpti_notes_first(notes);
    added = entry_of(notes, number);
    *added = (entry){*note, texts};
    added->note.name = copy_text(texts, note->name);
    added->note.args = copy_text(texts ? texts + note->name.size : NULL, note->args);
    notes->count++;
    return number;
}

const kpti_note *kpti_notes_get(const kpti_notes *notes, uint64_t number)
{
    uint32_t first = kpti_notes_first(notes);
    if (number < first || number - first >= notes->count) return NULL;
    return &entry_of(notes, (uint32_t)number)->note;
}

void kpti_notes_keep_last(kpti_notes *notes, uint32_t count)
{
    while (notes->count > count) {
        entry *oldest = entry_of(notes, notes->first);
        kpti_heap_give(&notes->heap, oldest->texts, texts_bytes(&oldest->note));
        notes->first++;
        notes->count--;
    }
}

void kpti_notes_free(kpti_notes *notes)
{
    kpti_notes_keep_last(notes, 0);
    kpti_heap_give(&notes->heap, notes->entries, notes->capacity * sizeof *notes->entries);
    notes->entries = NULL;
    notes->capacity = 0;
}
