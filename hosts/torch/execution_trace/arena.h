// arena.h: an arena: memory that is allocated piece by piece, released all together, and reused.
#ifndef KPTI_HOSTS_TORCH_EXECUTION_TRACE_ARENA_H
#define KPTI_HOSTS_TORCH_EXECUTION_TRACE_ARENA_H

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

namespace kpytrace
{

class Arena
{
  public:
    struct Place {
        size_t block;
        char *at;
    };

    Arena()
    {
        enter(0, ORDINARY);
    }

    // Returns memory for COUNT objects of T, which has no constructor to run. Throws std::bad_alloc.
    template <class T> T *take(size_t count)
    {
        const size_t size = (count * sizeof(T) + sizeof(max_align_t) - 1) & -sizeof(max_align_t);
        if (static_cast<size_t>(end_ - at_) < size) enter(block_ + 1, size);
        char *taken = at_;
        at_ += size;
        return reinterpret_cast<T *>(taken);
    }

    Place place() const
    {
        return {block_, at_};
    }

    // Releases all memory that was taken after PLACE.
    void go_back(Place place)
    {
        if (block_ != place.block) {
            block_ = place.block;
            end_ = blocks_[block_].items.get() + blocks_[block_].size;
        }
        at_ = place.at;
    }

  private:
    enum { ORDINARY = 16384 };

    struct Block {
        std::unique_ptr<char[]> items;
        size_t size;
    };

    // Continues in BLOCK, or in a later block that has SIZE bytes.
    [[gnu::noinline]] void enter(size_t block, size_t size)
    {
        while (block < blocks_.size() && blocks_[block].size < size)
            block++;
        if (block == blocks_.size()) {
            const size_t min = std::max<size_t>(size, ORDINARY);
            blocks_.push_back({std::unique_ptr<char[]>(new char[min]), min});
        }
        block_ = block;
        at_ = blocks_[block].items.get();
        end_ = at_ + blocks_[block].size;
    }

    std::vector<Block> blocks_;
    size_t block_ = 0;
    char *at_ = nullptr;
    char *end_ = nullptr;
};

} // namespace kpytrace
#endif
