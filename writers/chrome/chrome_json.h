/* chrome_json.h: the format Chrome trace JSON. */
#ifndef KPTI_WRITERS_CHROME_CHROME_JSON_H
#define KPTI_WRITERS_CHROME_CHROME_JSON_H

#include "writers/format/writer_options.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const kpti_format kpti_format_chrome;

#ifdef __cplusplus
}
#endif
#endif
