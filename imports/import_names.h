/* import_names.h: the names of an imported trace, numbered from 1 in the order of arrival, each split into function,
 * file and line where its text has them:
 *
 *   app/main.py(12): load        kpytrace and torch
 *   load (app/main.py:12)        viztracer
 *
 * One thread at a time. */
#ifndef KPTI_IMPORTS_IMPORT_NAMES_H
#define KPTI_IMPORTS_IMPORT_NAMES_H

#include "core/base/u64_map.h"
#include "core/recording/recording.h"

/* Where the texts of names are; zeroed at first. */
typedef struct kpti_import_texts {
    struct kpti_import_block *newest;
} kpti_import_texts;

/* Copies TEXT, the inside of a JSON string, with its escapes resolved, as valid UTF-8. Returns data NULL if there is no
 * memory. */
kpt_str kpti_import_text(kpti_import_texts *texts, kpt_str text);

void kpti_import_texts_free(kpti_import_texts *texts);

/* Zeroed at first. */
typedef struct kpti_import_names {
    kpti_u64_map numbers; /* by the text and the category */
    kpti_import_texts texts;
    kpti_function_view *items; /* by number; item 0 is not used */
    uint64_t capacity;
    uint32_t count; /* numbers are below it */
} kpti_import_names;

/* Returns the number of NAME, or 0 if there is no memory or no number left. ARGS are the arguments of the call, which may
 * have its qualified name: calls of equal names with different ones are different functions. */
uint32_t kpti_import_names_at(kpti_import_names *names, kpt_str name, kpt_str category,
                              kpt_str args);

/* A kpti_describe_fn. Its ctx is the names. */
int kpti_import_names_describe(void *names, uint32_t number, kpti_function_view *out);

void kpti_import_names_free(kpti_import_names *names);

#endif
