/* kpt_inputs.h: the inputs of an operator or a range, as bytes that a host writes and a recording keeps
 * (kpt_operator.inputs, KPT_DELIVER_INPUTS); since 1.2.
 *
 * Inputs follow each other. Each begins with a byte, KPT_INPUT_*, which defines what follows:
 *   OTHER, UNDEFINED, FALSE, TRUE  nothing
 *   TENSOR   the type of its elements, a byte; the number of dimensions; the sizes; the strides
 *   SIZES    the same without strides: a tensor that has none
 *   TENSORS  the number of tensors in a list; then those that were kept, each TENSOR, SIZES or
 *            UNDEFINED; then END
 *   INT      a number
 *   DOUBLE   8 bytes: its bits, the lowest byte first
 *   COMPLEX  16 bytes: two of those
 *   SCALARS  scalars, each FALSE, TRUE, INT, DOUBLE or COMPLEX; then END
 *   KEYWORDS the keywords, behind all other inputs. Each is a TEXT, its name, and its value: a scalar,
 *            TEXT, LIST or OTHER; then END
 *   TEXT     in KEYWORDS only: the number of bytes; then these bytes, in UTF-8
 *   LIST     in KEYWORDS only: values; then END
 *
 * A number of dimensions, of tensors or of bytes, a size and a stride is unsigned: seven bits in each
 * byte, the lowest first; the highest bit of a byte says that another one follows. The number of an
 * INT is (n << 1) ^ (n >> 63), which keeps small negative ones short, written in the same way.
 *
 * A reader stops at an unknown byte or where the bytes end too early, and keeps what it has read. */
#ifndef KPT_INPUTS_H
#define KPT_INPUTS_H

#ifdef __cplusplus
extern "C" {
#endif

enum {
    KPT_INPUT_OTHER = 0,     /* nothing that the host describes: none, a text, an object */
    KPT_INPUT_UNDEFINED = 1, /* a tensor without sizes that can be read */
    KPT_INPUT_TENSOR = 2,
    KPT_INPUT_SIZES = 3,
    KPT_INPUT_TENSORS = 4,
    KPT_INPUT_END = 5,
    KPT_INPUT_FALSE = 6,
    KPT_INPUT_TRUE = 7,
    KPT_INPUT_INT = 8,
    KPT_INPUT_DOUBLE = 9,
    KPT_INPUT_COMPLEX = 10,
    KPT_INPUT_SCALARS = 11,
    KPT_INPUT_KEYWORDS = 12,
    KPT_INPUT_TEXT = 13,
    KPT_INPUT_LIST = 14
};

/* The type of a tensor's elements has torch's number (c10::ScalarType). */

/* The bytes of an operator's inputs of which a recording keeps all. */
enum { KPT_INPUTS_MOST_BYTES = 16384 };

/* A LIST is inside of fewer than so many others. */
enum { KPT_INPUTS_MAX_NESTING = 8 };

#ifdef __cplusplus
}
#endif
#endif
