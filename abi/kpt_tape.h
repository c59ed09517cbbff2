/* kpt_tape.h: operators that the host writes itself, word by word. begin_op and end_op copy values
 * that the host must collect first; a tape avoids that copy. It is meant for hosts to which the
 * time of each operator matters; since 1.1.
 *
 * A tape is a part of an observer's memory that belongs to one thread. To record an operator, the
 * host calls `begin`, writes the inputs between `at` and `limit`, sets `at` to the word after them,
 * and calls `begun`. The host can also call `give_up` instead, as it does if there is no room, and
 * then call begin_op. `end` and `ended` do the same for the end and the outputs. Between `begin`
 * and `begun`, and between `end` and `ended`, the thread calls no other function of this observer,
 * and nothing that can wait for Python.
 *
 * Values are words. The first word is a kpt_tape_value. Its kind defines what follows:
 *   BOOL, INT, STREAM  one word: the number    DOUBLE  one word: its bits
 *   STRING             its bytes, size of them, padded to whole words
 *   DEVICE, OTHER      nothing: size is the offset of a text
 *   LIST, TUPLE        size values, KPT_TAPE_MOST_ITEMS at most, nested KPT_TAPE_MOST_DEPTH deep at
 *                      most
 *   TENSOR             as kpt_tape_tensor defines; size is the size of an element in bytes
 *   KPT_TAPE_SAME      nothing: size is the offset of a TENSOR, and the value is that tensor again
 *
 * Offsets are in words from `base`. The offset of a text, of a function, and of a TENSOR in an
 * operator that was begun or ended, is valid as long as `serial` does not change. */
#ifndef KPT_TAPE_H
#define KPT_TAPE_H

#include "kpt_base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kpt_op;
struct kpt_tape;

/* The limit of items is that of torch's own observer. */
enum { KPT_TAPE_MOST_ITEMS = 4097, KPT_TAPE_MOST_DEPTH = 16 };

/* Frozen, like kpt_value, because values are adjacent in memory. kpt_tape_tensor is frozen too. */
typedef struct kpt_tape_value {
    uint8_t kind;  /* KPT_VALUE_*, or KPT_TAPE_SAME */
    uint8_t flags; /* of a tensor: KPT_TAPE_* below */
    uint16_t dimensions;
    uint32_t size;
} kpt_tape_value;
enum { KPT_TAPE_SAME = 0xFF };

enum {
    KPT_TAPE_NO_SIZES = 1 << 0,    /* the sizes are symbolic and left out */
    KPT_TAPE_WIDE = 1 << 1,        /* numbers have 8 bytes, not 4 */
    KPT_TAPE_GENERATIONS = 1 << 2, /* two words: the tensor's and the storage's; if not set, 0 */
    KPT_TAPE_RANGE = 1 << 3, /* two words; RANGE, UNSIGNED and DATA are set by the observer only */
    KPT_TAPE_UNSIGNED = 1 << 4, /* the two words of the range are unsigned */
    KPT_TAPE_DATA = 1 << 5,     /* one word: the number of bytes; then the bytes */
    KPT_TAPE_NO_STRIDES = 1 << 6
};

/* After the struct follow, in this order: generations; numbers (offset, count, sizes, strides),
 * padded to whole words; range; data. */
typedef struct kpt_tape_tensor {
    uint32_t dtype; /* dtype and device are offsets of texts; 0 is the empty text */
    uint32_t device;
    uint64_t tensor_id;
    uint64_t storage_id;
} kpt_tape_tensor;

typedef struct kpt_tape_ops {
    uint32_t struct_size;
    uint32_t flags; /* none defined */

    /* Begins an operator. Returns 0 if the operator cannot be written to the tape. The host then
     * calls begin_op, which also detects that nothing is recorded.
     * thread: the tape's thread
     * GIL: not needed
     * ownership: nothing is transferred
     * errors: none
     * since: 1.1 */
    uint32_t (*begin)(struct kpt_tape *tape);

    /* Stores TEXT and returns its offset, or 0 if there is no room or TEXT is empty. Legal between
     * begin and begun, and between end and ended.
     * thread: the tape's thread
     * GIL: not needed
     * ownership: text is borrowed during the call
     * errors: none
     * since: 1.1 */
    uint32_t (*text)(struct kpt_tape *tape, kpt_str text);

    /* Stores the fields that the calls of one operator have in common: OP's scope, threads, four
     * texts and flags. Returns their offset, or 0 if there is no room. Legal between begin and
     * begun.
     * thread: the tape's thread
     * GIL: not needed
     * ownership: op and everything that it points to is borrowed during the call
     * errors: none
     * since: 1.1 */
    uint32_t (*function)(struct kpt_tape *tape, const struct kpt_op *op);

    /* Completes the begin of an operator, whose VALUE_COUNT inputs end at the tape's `at`. Returns
     * the operator's number, as begin_op does, or 0 if the operator is not recorded because `at` or
     * the offset FUNCTION is out of bounds.
     * thread: the tape's thread
     * GIL: not needed
     * ownership: nothing is transferred
     * errors: none
     * since: 1.1 */
    uint64_t (*begun)(struct kpt_tape *tape, uint32_t function, uint64_t record_id,
                      int64_t sequence, uint32_t value_count);

    /* Begins the end of the operator OP_ID, which ended without an error. Returns 0 if the end
     * cannot be written to the tape. The host then calls end_op.
     * thread: the tape's thread
     * GIL: not needed
     * ownership: nothing is transferred
     * errors: none
     * since: 1.1 */
    uint32_t (*end)(struct kpt_tape *tape, uint64_t op_id);

    /* Completes the end of the operator, whose VALUE_COUNT outputs end at the tape's `at`. If `at`
     * is out of bounds, the operator is recorded without outputs.
     * thread: the tape's thread
     * GIL: not needed
     * ownership: nothing is transferred
     * errors: none
     * since: 1.1 */
    void (*ended)(struct kpt_tape *tape, uint32_t value_count);

    /* Called instead of begun or ended. Discards the words written since begin or end, except texts
     * and functions.
     * thread: the tape's thread
     * GIL: not needed
     * ownership: nothing is transferred
     * errors: none
     * since: 1.1 */
    void (*give_up)(struct kpt_tape *tape);
} kpt_tape_ops;
#define KPT_TAPE_OPS_V1_SIZE KPT_FIELD_END(kpt_tape_ops, give_up)

/* Belongs to the observer. The host changes only `at`; the observer may change every field, inside
 * its functions. */
typedef struct kpt_tape {
    uint32_t struct_size;
    uint32_t serial; /* never 0 */
    const kpt_tape_ops *ops;
    uint64_t *base;
    uint64_t *at;
    uint64_t *limit;
} kpt_tape;
#define KPT_TAPE_V1_SIZE KPT_FIELD_END(kpt_tape, limit)

#ifdef __cplusplus
}
#endif
#endif
