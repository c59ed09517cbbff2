/* import_chunks.h: writes imported tracks as the chunks and tables of a .kpt file. A tick is a nanosecond. */
#ifndef KPTI_IMPORTS_IMPORT_CHUNKS_H
#define KPTI_IMPORTS_IMPORT_CHUNKS_H

#include "imports/import_names.h"
#include "imports/import_tracks.h"
#include "writers/kpt/kpt_writer.h"

typedef struct kpti_import_recording {
    kpti_import_names *names;
    kpti_import_tracks *tracks; /* nested */
    int64_t base_ns;            /* Unix time of the moment 0 of the tracks */
} kpti_import_recording;

/* Puts everything into WRITER. Returns KPT_OK, KPT_E_MEMORY, KPT_E_LIMIT or KPT_E_IO. */
kpt_status kpti_import_put(const kpti_import_recording *recording, kpti_kpt_writer *writer);

#endif
