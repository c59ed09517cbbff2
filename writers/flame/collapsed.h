/* collapsed.h: the format of collapsed stacks, which flame graph tools read. */
#ifndef KPTI_WRITERS_FLAME_COLLAPSED_H
#define KPTI_WRITERS_FLAME_COLLAPSED_H

#include "writers/format/writer_options.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const kpti_format kpti_format_collapsed;

#ifdef __cplusplus
}
#endif
#endif
