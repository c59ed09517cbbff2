#include "writers/operators/operator_inputs.h"

#include <math.h>
#include <stdio.h>

#include "writers/encode/json_text.h"
#include "writers/operators/input_cursor.h"

#define PUT KPTI_PUT

/* What of the inputs is written. */
typedef enum field { VALUES, TYPES, STRIDES, SIZES } field;

/* The names that C++ has for the types, by torch's number. */
static const char *const type_names[] = {
    "unsigned char",
    "signed char",
    "short int",
    "int",
    "long int",
    "c10::Half",
    "float",
    "double",
    "c10::complex<c10::Half>",
    "c10::complex<float>",
    "c10::complex<double>",
    "bool",
    "c10::qint8",
    "c10::quint8",
    "c10::qint32",
    "c10::BFloat16",
    "c10::quint4x2",
    "c10::quint2x4",
    "c10::bits1x8",
    "c10::bits2x4",
    "c10::bits4x2",
    "c10::bits8",
    "c10::bits16",
    "c10::Float8_e5m2",
    "c10::Float8_e4m3fn",
    "c10::Float8_e5m2fnuz",
    "c10::Float8_e4m3fnuz",
    "short unsigned int",
    "unsigned int",
    "long unsigned int",
};
enum { TYPE_NAMES = sizeof type_names / sizeof *type_names };

/* Writes VALUE as torch does: "1." for whole numbers up to 1e10, else 17 digits. */
static char *put_double(char *at, double value)
{
    if (fabs(value) <= 1e10 && value == floor(value)) {
        if (value < 0) at = PUT(at, "-");
        return PUT(kpti_put_u64(at, (uint64_t)fabs(value)), ".");
    }
    if (isnan(value)) return PUT(at, "nan");
    return at + snprintf(at, KPTI_JSON_MAX_NUMBER, "%.17g", value);
}

static char *put_complex(char *at, double real, double imaginary)
{
    at = put_double(at, real);
    if (!(imaginary < 0)) at = PUT(at, "+");
    return PUT(put_double(at, imaginary), "j");
}

/* Writes the scalar of kind WHAT. Returns NULL if it is none. */
static char *put_scalar(char *at, kpti_input_cursor *c, uint32_t what)
{
    double real;
    switch (what) {
    case KPT_INPUT_FALSE:
        return PUT(at, "False");
    case KPT_INPUT_TRUE:
        return PUT(at, "True");
    case KPT_INPUT_INT:
        return kpti_put_i64(at, kpti_input_signed(c));
    case KPT_INPUT_DOUBLE:
        return put_double(at, kpti_input_double(c));
    case KPT_INPUT_COMPLEX:
        real = kpti_input_double(c);
        return put_complex(at, real, kpti_input_double(c));
    default:
        return NULL;
    }
}

static char *put_scalars(char *at, kpti_input_cursor *c)
{
    const char *const begin = at;
    uint32_t what = kpti_input_byte(c);
    at = PUT(at, "[");
    for (; what != KPT_INPUT_END; what = kpti_input_byte(c)) {
        char *const next = put_scalar(at == begin + 1 ? at : PUT(at, ", "), c, what);
        if (!next) { /* an unknown byte */
            c->at = c->end;
            break;
        }
        at = next;
    }
    return PUT(at, "]");
}

/* Reads COUNT numbers, and writes them if IS_SHOWN. */
static char *put_numbers(char *at, kpti_input_cursor *c, uint64_t count, int is_shown)
{
    if (is_shown) at = PUT(at, "[");
    for (uint64_t i = 0; i < count && c->at < c->end; i++) {
        const uint64_t number = kpti_input_number(c);
        if (is_shown) at = kpti_put_u64(i ? PUT(at, ", ") : at, number);
    }
    return is_shown ? PUT(at, "]") : at;
}

const char *kpti_input_type_name(uint32_t type)
{
    return type < TYPE_NAMES ? type_names[type] : NULL;
}

static char *put_type(char *at, uint32_t type)
{
    if (type >= TYPE_NAMES) return kpti_put_u64(PUT(at, "type "), type);
    return kpti_put_bytes(at, type_names[type], strlen(type_names[type]));
}

/* Writes PART of the tensor of kind WHAT: a list, the name of a type, or nothing. */
static char *put_tensor(char *at, kpti_input_cursor *c, uint32_t what, field part)
{
    uint32_t type;
    uint64_t dimensions;
    if (what == KPT_INPUT_UNDEFINED) return part >= STRIDES ? PUT(at, "[]") : at;
    type = kpti_input_byte(c);
    dimensions = kpti_input_number(c);
    if (part == TYPES) at = put_type(at, type);
    at = put_numbers(at, c, dimensions, part == SIZES);
    if (what == KPT_INPUT_TENSOR)
        at = put_numbers(at, c, dimensions, part == STRIDES);
    else if (part == STRIDES)
        at = PUT(at, "[]");
    return at;
}

static char *put_tensors(char *at, kpti_input_cursor *c, field part)
{
    const int is_shown = part >= STRIDES;
    uint32_t what;
    uint32_t written = 0;
    (void)kpti_input_number(c);
    if (part == TYPES) at = PUT(at, "TensorList");
    if (is_shown) at = PUT(at, "[");
    for (what = kpti_input_byte(c); kpti_input_is_tensor(what); what = kpti_input_byte(c)) {
        if (is_shown && written++) at = PUT(at, ", ");
        at = put_tensor(at, c, what, is_shown ? part : VALUES);
    }
    if (what != KPT_INPUT_END) c->at = c->end;
    return is_shown ? PUT(at, "]") : at;
}

/* Writes PART of an input that is no tensor, without its value. */
static char *put_plain(char *at, field part, const char *type)
{
    if (part == VALUES) return at;
    if (part == TYPES) return kpti_put_bytes(at, type, strlen(type));
    return PUT(at, "[]");
}

static char *put_input(char *at, kpti_input_cursor *c, field part)
{
    const uint32_t what = kpti_input_byte(c);
    kpti_input_cursor rest = *c;
    char *end;
    if (kpti_input_is_tensor(what)) return put_tensor(at, c, what, part);
    if (what == KPT_INPUT_TENSORS) return put_tensors(at, c, part);
    if (what == KPT_INPUT_OTHER) return put_plain(at, part, "");
    end = what == KPT_INPUT_SCALARS ? put_scalars(at, &rest) : put_scalar(at, &rest, what);
    if (!end) { /* an unknown byte */
        c->at = c->end;
        return put_plain(at, part, "");
    }
    *c = rest;
    if (part == VALUES) return end;
    return put_plain(at, part, what == KPT_INPUT_SCALARS ? "ScalarList" : "Scalar");
}

/* Writes PART of all inputs that have no name. Leaves the reader behind them. */
static char *put_field(char *at, kpt_str inputs, field part, kpti_input_cursor *c)
{
    const int is_text = part == VALUES || part == TYPES;
    *c = kpti_input_cursor_of(inputs);
    for (int i = 0; !kpti_input_is_last(c); i++) {
        if (i) at = PUT(at, ", ");
        if (is_text) at = PUT(at, "\"");
        at = put_input(at, c, part);
        if (is_text) at = PUT(at, "\"");
    }
    return PUT(at, "]");
}

static char *put_text(char *at, kpt_str text)
{
    return PUT(kpti_json_escape(PUT(at, "\""), text.data, (size_t)text.size), "\"");
}

/* Writes a list of texts. Returns NULL if it has something else, and leaves the reader behind it in any case. */
static char *put_texts(char *at, kpti_input_cursor *c)
{
    const char *const begin = at;
    int has_others = 0;
    uint32_t what = kpti_input_byte(c);
    at = PUT(at, "[");
    for (; what != KPT_INPUT_END; what = kpti_input_byte(c)) {
        if (what == KPT_INPUT_TEXT) {
            at = put_text(at == begin + 1 ? at : PUT(at, ", "), kpti_input_text(c));
            continue;
        }
        has_others = 1;
        kpti_input_skip(c, what);
    }
    return has_others ? NULL : PUT(at, "]");
}

/* Writes the value of a keyword. A text with a quote is None, as torch's profiler writes it. Returns NULL if torch's profiler
 * does not write the value. */
static char *put_value(char *at, kpti_input_cursor *c)
{
    const uint32_t what = kpti_input_byte(c);
    double value;
    kpt_str text;
    switch (what) {
    case KPT_INPUT_FALSE:
        return PUT(at, "false");
    case KPT_INPUT_TRUE:
        return PUT(at, "true");
    case KPT_INPUT_INT:
        return kpti_put_i64(at, kpti_input_signed(c));
    case KPT_INPUT_DOUBLE:
        value = kpti_input_double(c);
        if (isfinite(value)) return kpti_put_double(at, value);
        return PUT(put_double(PUT(at, "\""), value), "\"");
    case KPT_INPUT_TEXT:
        text = kpti_input_text(c);
        if (!text.size) return NULL;
        if (memchr(text.data, '"', (size_t)text.size)) return PUT(at, "\"None\"");
        return put_text(at, text);
    case KPT_INPUT_LIST:
        return put_texts(at, c);
    default:
        kpti_input_skip(c, what);
        return NULL;
    }
}

/* The names of an event's fields, as they are in JSON, each once. */
enum { MAX_NAMES = 64 };
typedef struct names {
    uint32_t count;
    kpt_str list[MAX_NAMES];
} names;

#define NAME(text)               \
    {                            \
        (text), sizeof(text) - 1 \
    }

/* Those that the event has without keywords. */
static const names event_names = {
    9,
    {NAME("\"Concrete Inputs\""), NAME("\"Input type\""), NAME("\"Input Strides\""),
     NAME("\"Input Dims\""), NAME("\"External id\""), NAME("\"Sequence number\""),
     NAME("\"Ev Idx\""), NAME("\"Record function id\""), NAME("\"Fwd thread id\"")}};

/* Adds NAME. Returns 0 if it is there already, or if there are too many. */
static int add_name(names *known, kpt_str name)
{
    for (uint32_t i = 0; i < known->count; i++)
        if (known->list[i].size == name.size &&
            memcmp(known->list[i].data, name.data, (size_t)name.size) == 0)
            return 0;
    if (known->count == MAX_NAMES) return 0;
    known->list[known->count++] = name;
    return 1;
}

/* The stream of a kernel is a number. */
static int is_stream(kpt_str name)
{
    static const char stream[] = {'s', 't', 'r', 'e', 'a', 'm'};
    return name.size == sizeof stream && memcmp(name.data, stream, sizeof stream) == 0;
}

static char *put_keywords(char *at, kpti_input_cursor *c)
{
    names known = event_names;
    kpt_str name;
    if (kpti_input_byte(c) != KPT_INPUT_KEYWORDS) return at;
    while (kpti_input_keyword(c, &name)) {
        const char *const begin = at + 1;
        char *end = put_text(PUT(at, ","), name);
        const kpt_str written = {begin, (uint64_t)(end - begin)};
        int is_wrong;
        is_wrong = is_stream(name) && *c->at != KPT_INPUT_INT;
        end = put_value(PUT(end, ":"), c);
        if (end && !is_wrong && add_name(&known, written)) at = end;
    }
    return at;
}

char *kpti_inputs_json(char *at, kpt_str inputs)
{
    kpti_input_cursor c = kpti_input_cursor_of(inputs);
    if (!kpti_input_is_last(&c)) {
        at = put_field(PUT(at, ",\"Concrete Inputs\":["), inputs, VALUES, &c);
        at = put_field(PUT(at, ",\"Input type\":["), inputs, TYPES, &c);
        at = put_field(PUT(at, ",\"Input Strides\":["), inputs, STRIDES, &c);
        at = put_field(PUT(at, ",\"Input Dims\":["), inputs, SIZES, &c);
    }
    return put_keywords(at, &c);
}
