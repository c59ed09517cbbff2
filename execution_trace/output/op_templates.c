#include "execution_trace/output/op_templates.h"

#include "core/base/hash.h"
#include "execution_trace/output/node_attrs.h"

static void fill(kpti_et_label *label, const kpti_et_item *item)
{
    const kpti_et_function *f = kpti_et_item_function(item);
    kpti_et_text *out = &label->text;
    out->used = 0;
    KPTI_ET_PUT(out, ",\"name\":\"");
    kpti_et_text_of(out, item, f->name);
    KPTI_ET_PUT(out, "\",\"ctrl_deps\":");
    label->ends[KPTI_ET_LABEL_NAME] = (uint32_t)out->used;
    KPTI_ET_PUT(out, SCOPE);
    kpti_et_text_u64(out, f->scope);
    KPTI_ET_PUT(out, TID);
    kpti_et_text_u64(out, f->thread);
    KPTI_ET_PUT(out, FW_TID);
    kpti_et_text_u64(out, f->forward_thread);
    KPTI_ET_PUT(out, OP_SCHEMA);
    kpti_et_text_of(out, item, f->schema);
    KPTI_ET_PUT(out, KERNEL_BACKEND);
    kpti_et_text_of(out, item, f->kernel_backend);
    KPTI_ET_PUT(out, KERNEL_FILE);
    kpti_et_text_of(out, item, f->kernel_file);
    KPTI_ET_PUT(out, TENSOR_RANGE);
    label->ends[KPTI_ET_LABEL_ATTRS] = (uint32_t)out->used;
    KPTI_ET_PUT(out, TENSOR_RANGE_END OURS);
    kpti_et_text_u64(out, item->chunk->os_tid);
    KPTI_ET_PUT(out, START);
    label->ends[KPTI_ET_LABEL_OURS] = (uint32_t)out->used;
    (void)kpti_et_text_reserve(out, KPTI_ET_STEP);
}

static int is_of(const kpti_et_label *label, const kpti_et_chunk *chunk, uint32_t function)
{
    return label->chunk == chunk && label->function == function;
}

const kpti_et_label *kpti_et_label_of(kpti_et_labels *l, const kpti_et_item *item)
{
    const kpti_et_chunk *chunk = item->chunk;
    const uint32_t function = ((const kpti_et_begin *)item->record)->function;
    const uint64_t mixed = kpti_hash_spread((uint64_t)(uintptr_t)chunk ^ function);
    kpti_et_label *label = &l->labels[mixed >> 56 << 1];
    kpti_et_label older;
    if (is_of(&label[0], chunk, function)) return &label[0];
    if (is_of(&label[1], chunk, function)) return &label[1];
    older = label[1]; /* reuse the memory of its text */
    label[1] = label[0];
    label[0] = older;
    label->chunk = chunk;
    label->function = function;
    label->number = ++l->count;
    label->text.heap = l->heap;
    fill(label, item);
    if (!label->text.failed) return label;
    label->chunk = NULL;
    label->text.failed = 0;
    return NULL;
}
_Static_assert(KPTI_ET_LABELS == 2 << (64 - 56), "as many bits are taken");

void kpti_et_labels_free(kpti_et_labels *l)
{
    for (int i = 0; i < KPTI_ET_LABELS; i++)
        if (l->labels[i].text.heap) kpti_et_text_free(&l->labels[i].text);
}
