/* node_attrs.h: the attributes that all nodes have, as JSON literals; the writer puts the values between
 * them. */
#ifndef KPTI_EXECUTION_TRACE_OUTPUT_NODE_ATTRS_H
#define KPTI_EXECUTION_TRACE_OUTPUT_NODE_ATTRS_H

#define NUMBER(name, type) "{\"name\":\"" name "\",\"type\":\"" type "\",\"value\":"
#define STRING(name)       NUMBER(name, "string") "\""
#define RF_ID              ",\"attrs\":[" NUMBER("rf_id", "uint64")
#define FW_PARENT          "}," NUMBER("fw_parent", "uint64")
#define SEQ_ID             "}," NUMBER("seq_id", "int64")
#define SCOPE              "}," NUMBER("scope", "uint64")
#define TID                "}," NUMBER("tid", "uint64")
#define FW_TID             "}," NUMBER("fw_tid", "uint64")
#define OP_SCHEMA          "}," STRING("op_schema")
#define KERNEL_BACKEND     "\"}," STRING("kernel_backend")
#define KERNEL_FILE        "\"}," STRING("kernel_file")
#define TENSOR_RANGE       "\"}," STRING("tensor_range")
#define TENSOR_RANGE_END   "\"}"
/* Our fields, in one attribute that other readers ignore. */
#define OURS     "," NUMBER("kpytrace", "map") "{\"os_tid\":"
#define START    ",\"start_ns\":"
#define DURATION ",\"dur_ns\":"

#endif
