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

static char *put_field(char *at, kpt_str inputs, field part)
{
    kpti_input_cursor c = {(const unsigned char *)inputs.data,
                           (const unsigned char *)inputs.data + inputs.size};
    const int is_text = part == VALUES || part == TYPES;
    for (int i = 0; c.at < c.end; i++) {
        if (i) at = PUT(at, ", ");
        if (is_text) at = PUT(at, "\"");
        at = put_input(at, &c, part);
        if (is_text) at = PUT(at, "\"");
    }
    return PUT(at, "]");
}

char *kpti_inputs_json(char *at, kpt_str inputs)
{
    at = put_field(PUT(at, ",\"Concrete Inputs\":["), inputs, VALUES);
    at = put_field(PUT(at, ",\"Input type\":["), inputs, TYPES);
    at = put_field(PUT(at, ",\"Input Strides\":["), inputs, STRIDES);
    return put_field(PUT(at, ",\"Input Dims\":["), inputs, SIZES);
}
