/* empty.c: an empty shared object. It measures the cost of opening any library, which is the floor. */
typedef int kpt_bench_nothing;
