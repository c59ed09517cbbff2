#include "hosts/torch/exporter/events/event_flops.h"

#include "writers/operators/input_cursor.h"

enum { MAX_INPUTS = 8, MAX_NUMBERS = 64 };

/* An input: the sizes of a tensor, or numbers. */
typedef struct input {
    int is_tensor;
    uint32_t count;
    uint64_t product; /* of all numbers */
    int64_t numbers[MAX_NUMBERS];
} input;

typedef struct inputs {
    uint32_t count;
    input items[MAX_INPUTS];
} inputs;

static void keep(input *in, int64_t number)
{
    if (in->count < MAX_NUMBERS) in->numbers[in->count] = number;
    in->count++; /* after MAX_NUMBERS only the product is usable */
    in->product *= (uint64_t)number;
}

static void read_tensor(kpti_input_cursor *c, uint32_t kind, input *out)
{
    uint64_t dimensions;
    out->is_tensor = 1;
    if (kind == KPT_INPUT_UNDEFINED) return;
    (void)kpti_input_byte(c);
    dimensions = kpti_input_number(c);
    for (uint64_t i = 0; i < dimensions && c->at < c->end; i++)
        keep(out, (int64_t)kpti_input_number(c));
    for (uint64_t i = 0; kind == KPT_INPUT_TENSOR && i < dimensions && c->at < c->end; i++)
        (void)kpti_input_number(c);
}

static void read_scalar(kpti_input_cursor *c, uint32_t kind, input *out)
{
    if (kind == KPT_INPUT_INT)
        keep(out, kpti_input_signed(c));
    else if (kind == KPT_INPUT_DOUBLE || kind == KPT_INPUT_COMPLEX)
        (void)kpti_input_double(c);
    if (kind == KPT_INPUT_COMPLEX) (void)kpti_input_double(c);
}

static void skip_tensors(kpti_input_cursor *c)
{
    input one = {0};
    uint32_t kind;
    (void)kpti_input_number(c);
    for (kind = kpti_input_byte(c); kpti_input_is_tensor(kind); kind = kpti_input_byte(c))
        read_tensor(c, kind, &one);
}

static void read_input(kpti_input_cursor *c, input *out)
{
    uint32_t kind = kpti_input_byte(c);
    memset(out, 0, sizeof *out);
    out->product = 1;
    if (kpti_input_is_tensor(kind)) {
        read_tensor(c, kind, out);
    } else if (kind == KPT_INPUT_TENSORS) {
        skip_tensors(c);
    } else if (kind == KPT_INPUT_SCALARS) {
        for (kind = kpti_input_byte(c); kind != KPT_INPUT_END; kind = kpti_input_byte(c))
            read_scalar(c, kind, out);
    } else {
        read_scalar(c, kind, out);
    }
}

static void read_all(kpt_str bytes, inputs *out)
{
    kpti_input_cursor c = {(const unsigned char *)bytes.data,
                           (const unsigned char *)bytes.data + bytes.size};
    out->count = 0;
    while (c.at < c.end && out->count < MAX_INPUTS)
        read_input(&c, &out->items[out->count++]);
}

/* Returns input INDEX if it is a tensor with sizes, or NULL. */
static const input *tensor_of(const inputs *in, uint32_t index)
{
    const input *const one = index < in->count ? &in->items[index] : NULL;
    return one && one->is_tensor && one->count && one->count <= MAX_NUMBERS ? one : NULL;
}

/* Products of matrices; the first one's outermost dimension is that of the batch, if IS_BATCH. */
static uint64_t of_product(const inputs *in, uint32_t first, int is_batch)
{
    const input *const left = tensor_of(in, first);
    const input *const right = tensor_of(in, first + 1);
    uint64_t divisor;
    if (!left || !right) return 0;
    divisor = (uint64_t)left->numbers[left->count - 1];
    if (is_batch) divisor *= (uint64_t)left->numbers[0];
    return divisor ? left->product / divisor * right->product * 2 : 0;
}

/* STRIDE is positive. The others may be any numbers, since an operator that refuses its inputs is recorded, too. */
static uint64_t output_size(int64_t size, int64_t padding, int64_t dilation, int64_t kernel,
                            int64_t stride)
{
    const uint64_t last =
        (uint64_t)size + 2 * (uint64_t)padding - (uint64_t)dilation * ((uint64_t)kernel - 1) - 1;
    return (uint64_t)((int64_t)last / stride) + 1;
}

static uint64_t of_conv2d(const inputs *in)
{
    const input *const data = tensor_of(in, 0);
    const input *const weight = tensor_of(in, 1);
    const input *const more = in->items; /* stride, padding, dilation, groups from 3 on */
    uint64_t height;
    uint64_t width;
    if (in->count < 7 || !data || !weight || data->count != 4 || weight->count != 4) return 0;
    for (uint32_t i = 3; i < 6; i++)
        if (more[i].count != 2) return 0;
    if (more[6].count != 1 || !more[6].numbers[0] || more[3].numbers[0] <= 0 ||
        more[3].numbers[1] <= 0)
        return 0;
    height = output_size(data->numbers[2], more[4].numbers[0], more[5].numbers[0],
                         weight->numbers[2], more[3].numbers[0]);
    width = output_size(data->numbers[3], more[4].numbers[1], more[5].numbers[1],
                        weight->numbers[3], more[3].numbers[1]);
    return 2 * (uint64_t)data->numbers[0] * height * width * (uint64_t)weight->numbers[2] *
           (uint64_t)weight->numbers[3] * (uint64_t)data->numbers[1] *
           (uint64_t)weight->numbers[0] / (uint64_t)more[6].numbers[0];
}

static uint64_t of_elements(const inputs *in)
{
    return in->count && in->items[0].is_tensor ? in->items[0].product : 0;
}

static uint64_t of_mm(const inputs *in)
{
    return of_product(in, 0, 0);
}

static uint64_t of_addmm(const inputs *in)
{
    return of_product(in, 1, 0);
}

static uint64_t of_bmm(const inputs *in)
{
    return of_product(in, 0, 1);
}

static uint64_t of_baddbmm(const inputs *in)
{
    return of_product(in, 1, 1);
}

static const struct formula {
    kpt_str name;
    uint64_t (*of)(const inputs *in);
} formulas[] = {
    {{"aten::mm", 8}, of_mm},
    {{"aten::mul", 9}, of_elements},
    {{"aten::add", 9}, of_elements},
    {{"aten::bmm", 9}, of_bmm},
    {{"aten::addmm", 11}, of_addmm},
    {{"aten::conv2d", 12}, of_conv2d},
    {{"aten::baddbmm", 13}, of_baddbmm},
};

uint64_t kpti_event_flops(kpt_str name, kpt_str bytes)
{
    for (uint32_t i = 0; i < sizeof formulas / sizeof *formulas; i++) {
        inputs in;
        if (name.size != formulas[i].name.size ||
            memcmp(name.data, formulas[i].name.data, (size_t)name.size) != 0)
            continue;
        read_all(bytes, &in);
        return formulas[i].of(&in);
    }
    return 0;
}
