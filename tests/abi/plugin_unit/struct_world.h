/* struct_world.h: a host that is bound to libkpytrace.so and has one object of each kind, and the table of
 * the structs that it can pass to the plugin. */
#ifndef KPT_UNIT_STRUCT_WORLD_H
#define KPT_UNIT_STRUCT_WORLD_H

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/fixtures/mock_host/mock_host.h"

class struct_world
{
  public:
    struct_world();
    ~struct_world();

    /* An extension of the plugin's. */
    template <typename Table> Table table(const char *name) const
    {
        Table found;
        KPT_INIT(&found);
        EXPECT_EQ(info.get_extension(info.self, kpt_str_of(name), &found), KPT_OK);
        return found;
    }

    /* Makes a tracer and destroys it. */
    kpt_status try_make(const kpt_tracer_args *args);
    std::string plugin_text() const;  /* of the binding */
    std::string process_text() const; /* of the last entry call that failed */
    std::string tracer_text() const;
    std::string tracebacks_text() const;
    std::string gpu_text() const;

    mock_host host;
    kpt_plugin_entry_fn entry = nullptr;
    kpt_plugin_info info;
    kpt_tracer tracer;
    kpt_memory_tracer memory;
    kpt_observer observer;
    kpt_tracebacks tracebacks;
    kpt_gpu_tracer gpu;
};

/* A struct of the contract: how it is filled, and the call that takes it. */
struct row {
    const char *name;
    uint32_t v1_size;
    uint32_t size;
    bool by_stride;                                    /* an array's element, without struct_size */
    void (*prepare)(struct_world &world, void *whole); /* valid contents of today's struct */
    /* Passes the struct to the call, reverts its effects, and returns its status. */
    kpt_status (*use)(struct_world &world, void *peer, uint32_t stride);
    bool (*is_filled)(const void *peer);            /* NULL if the plugin only reads the struct */
    std::string (*text)(const struct_world &world); /* text of a refusal, or NULL */
    const char *word;                               /* that this text has in it */
    kpt_status refusal;                             /* the status for a size below V1 */
    kpt_status null_answer;
};

std::ostream &operator<<(std::ostream &out, const row &r);
const std::vector<row> &struct_rows();

#endif
