/* report_page.h: the page of a report without data, as UTF-8: the files in writers/report/page/, concatenated
 * by the build. report.c and other writers append sections to it. */
#ifndef KPTI_WRITERS_REPORT_REPORT_PAGE_H
#define KPTI_WRITERS_REPORT_REPORT_PAGE_H

#include <stddef.h>

extern const unsigned char kpti_report_page[];
extern const size_t kpti_report_page_bytes;

#endif
