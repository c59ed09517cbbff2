/* kpt_tape.h: operators written by the host itself, word by word, where begin_op and end_op would copy what the
 * host has to gather first. For hosts to which each operator's time matters; since 1.1.
 *
 * A tape is a piece of an observer's memory, of one thread. An operator begins with `begin`; then the host puts
 * its inputs between `at` and `limit`, moves `at` behind them, and says `begun`; or it gives up, as it does where
 * there is no room, and calls begin_op. `end` and `ended` are the same for the end and the outputs. Nothing else
 * of this observer's is called by the thread meanwhile, and nothing that waits for Python.
 *
 * Values are words. The first one is a kpt_tape_value; behind it, by its kind:
 *   BOOL, INT, STREAM  a word: the number       DOUBLE  a word: its bits
 *   STRING             its bytes, size of them, in whole words
 *   DEVICE, OTHER      nothing: size is a text's place
 *   LIST, TUPLE        size values, KPT_TAPE_MOST_ITEMS at most, at most KPT_TAPE_MOST_DEPTH deep
 *   TENSOR             as kpt_tape_tensor says; size is the bytes of an element
 *   KPT_TAPE_SAME      nothing: size is the place of a TENSOR, which it is again
 *
 * Places are offsets in words from `base`. That of a text, of a function, and of a TENSOR in an operator that
 * was begun or ended, is good as long as `serial` is the same. */
#ifndef KPT_TAPE_H
#define KPT_TAPE_H

#include "kpt_base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kpt_op;
struct kpt_tape;

/* Of a list, as many as torch's own observer writes. */
enum { KPT_TAPE_MOST_ITEMS = 4097, KPT_TAPE_MOST_DEPTH = 16 };

/* Frozen, like kpt_value, as is the next one: they lie behind each other. */
typedef struct kpt_tape_value {
    uint8_t kind;  /* KPT_VALUE_*, or KPT_TAPE_SAME */
    uint8_t flags; /* of a tensor: KPT_TAPE_* below */
    uint16_t dimensions;
    uint32_t size;
} kpt_tape_value;
enum { KPT_TAPE_SAME = 0xFF };

enum {
    KPT_TAPE_NO_SIZES = 1 << 0,    /* symbolic ones */
    KPT_TAPE_WIDE = 1 << 1,        /* numbers have 8 bytes, not 4 */
    KPT_TAPE_GENERATIONS = 1 << 2, /* two words: the tensor's and the storage's; else both are 0 */
    KPT_TAPE_RANGE = 1 << 3,       /* two words; the observer's own, as the following two */
    KPT_TAPE_UNSIGNED = 1 << 4,    /* so they are */
    KPT_TAPE_DATA = 1 << 5,        /* a word: how many bytes; then these */
    KPT_TAPE_NO_STRIDES = 1 << 6
};

/* Behind it, in this order: generations; numbers (offset, count, sizes, strides), in whole words; range; data. */
typedef struct kpt_tape_tensor {
    uint32_t dtype; /* places of texts; 0 is the empty one */
    uint32_t device;
    uint64_t tensor_id;
    uint64_t storage_id;
} kpt_tape_tensor;

typedef struct kpt_tape_ops {
    uint32_t struct_size;
    uint32_t flags; /* none defined */

    /* An operator begins. 0: it can't be written here; begin_op takes it, or knows that nothing is recorded.
     * thread: the tape's
     * GIL: not needed
     * ownership: none passes
     * errors: none
     * since: 1.1 */
    uint32_t (*begin)(struct kpt_tape *tape);

    /* The place of a text, between a begin or end and what completes it; 0: there is no room, or it is empty.
     * thread: the tape's
     * GIL: not needed
     * ownership: text is borrowed during the call
     * errors: none
     * since: 1.1 */
    uint32_t (*text)(struct kpt_tape *tape, kpt_str text);

    /* The place of what the calls of one operator have in common: OP's scope, threads, four texts and flags; between a
     * begin and its begun. 0: there is no room.
     * thread: the tape's
     * GIL: not needed
     * ownership: op and all that it points to is borrowed during the call
     * errors: none
     * since: 1.1 */
    uint32_t (*function)(struct kpt_tape *tape, const struct kpt_op *op);

    /* The operator has begun: VALUE_COUNT inputs end at the tape's at. Its number, as begin_op has it; 0: it is
     * not recorded, as `at` or the function's place is out of bounds.
     * thread: the tape's
     * GIL: not needed
     * ownership: none passes
     * errors: none
     * since: 1.1 */
    uint64_t (*begun)(struct kpt_tape *tape, uint32_t function, uint64_t record_id,
                      int64_t sequence, uint32_t value_count);

    /* The operator OP_ID ends without an error. 0: it can't be written here; end_op takes it.
     * thread: the tape's
     * GIL: not needed
     * ownership: none passes
     * errors: none
     * since: 1.1 */
    uint32_t (*end)(struct kpt_tape *tape, uint64_t op_id);

    /* The operator has ended: VALUE_COUNT outputs end at the tape's at; with an `at` out of bounds it has none.
     * thread: the tape's
     * GIL: not needed
     * ownership: none passes
     * errors: none
     * since: 1.1 */
    void (*ended)(struct kpt_tape *tape, uint32_t value_count);

    /* In place of begun, or of ended: what was put since then is not on the tape, but for texts and functions.
     * thread: the tape's
     * GIL: not needed
     * ownership: none passes
     * errors: none
     * since: 1.1 */
    void (*give_up)(struct kpt_tape *tape);
} kpt_tape_ops;
#define KPT_TAPE_OPS_V1_SIZE KPT_FIELD_END(kpt_tape_ops, give_up)

/* The observer's own; all but `at` is its to change, in its calls. */
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
