/* speedscope.h: the format of speedscope. */
#ifndef KPTI_WRITERS_FLAME_SPEEDSCOPE_H
#define KPTI_WRITERS_FLAME_SPEEDSCOPE_H

#include "writers/format/writer_options.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const kpti_format kpti_format_speedscope;

#ifdef __cplusplus
}
#endif
#endif
