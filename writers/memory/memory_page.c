#include "writers/memory/memory_page.h"

#include "writers/encode/gzip_base64.h"
#include "writers/report/report_page.h"

static void put_packed(void *packed, const void *bytes, size_t size)
{
    kpti_packed_put(packed, bytes, size);
}

int kpti_memory_page_put(const kpti_memory_history *history, const kpti_memory_sums *sums,
                         kpti_out_file *out)
{
    static const char begin[] =
        "<script type=\"text/plain\" class=\"section\" data-kind=\"memory\" data-pack=\"gzip\">";
    static const char end[] = "</script>\n";
    kpti_packed packed = {.out = out};
    int whole = !kpti_packed_begin(&packed);
    if (whole) {
        kpti_out_put(out, kpti_report_page, kpti_report_page_bytes);
        kpti_out_put(out, begin, sizeof begin - 1);
        whole = kpti_memory_tables_put(history, sums, put_packed, &packed);
    }
    kpti_packed_end(&packed, whole);
    if (whole) kpti_out_put(out, end, sizeof end - 1);
    return whole;
}

int kpti_memory_page_write(kpti_memory_history *history, kpti_out_file *out)
{
    kpti_memory_sums sums;
    const int whole =
        kpti_memory_tables_read(history, 1, &sums) && kpti_memory_page_put(history, &sums, out);
    kpti_memory_sums_free(&sums);
    return whole;
}
