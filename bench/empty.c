/* empty.c: a shared object with nothing in it: what opening any library costs, and so the floor. */
typedef int kpt_bench_nothing;
