#include "tests/writers/inflate.h"

#include <array>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace
{

void must(bool holds, const char *what)
{
    if (!holds) throw std::runtime_error(std::string("inflate: ") + what);
}

struct bit_reader {
    const std::string &bytes;
    size_t at = 0; /* in bits */
    uint32_t take(uint32_t count)
    {
        uint32_t value = 0;
        must(at + count <= bytes.size() * 8, "it ends early");
        for (uint32_t i = 0; i < count; i++, at++)
            value |= (static_cast<uint8_t>(bytes[at / 8]) >> at % 8 & 1u) << i;
        return value;
    }
};

struct prefix_code {
    std::array<uint32_t, 16> counts{};
    std::vector<uint32_t> symbols; /* by code */
    explicit prefix_code(const std::vector<uint32_t> &sizes)
    {
        uint32_t taken = 0;
        for (uint32_t size = 1; size < 16; size++)
            for (uint32_t symbol = 0; symbol < sizes.size(); symbol++)
                if (sizes[symbol] == size) {
                    counts[size]++;
                    symbols.push_back(symbol);
                    taken += 1u << (15 - size);
                }
        must(taken == 1u << 15, "a code is not complete");
    }
    uint32_t take(bit_reader &in) const
    {
        uint32_t code = 0, first = 0, index = 0;
        for (uint32_t size = 1; size < 16; size++) {
            code = code << 1 | in.take(1);
            first <<= 1;
            if (code - first < counts[size]) return symbols[index + code - first];
            index += counts[size];
            first += counts[size];
        }
        throw std::runtime_error("inflate: no code");
    }
};

void take_stored(bit_reader &in, std::string &out)
{
    in.at = (in.at + 7) / 8 * 8;
    const uint32_t size = in.take(16);
    must((in.take(16) ^ size) == 0xFFFF, "a stored size");
    must(in.at / 8 + size <= in.bytes.size(), "it ends early");
    out.append(in.bytes, in.at / 8, size);
    in.at += size * size_t{8};
}

/* A value by its slot: those that share one differ in extra bits. */
uint32_t take_value(bit_reader &in, uint32_t slot, uint32_t kept)
{
    if (slot >> kept == 0) return slot;
    const uint32_t extra = (slot >> kept) - 1;
    return ((1u << kept | (slot & ((1u << kept) - 1))) << extra) + in.take(extra);
}

void take_coded(bit_reader &in, const prefix_code &symbols, const prefix_code &distances,
                std::string &out)
{
    for (uint32_t symbol; (symbol = symbols.take(in)) != 256;) {
        if (symbol < 256) {
            out += static_cast<char>(symbol);
            continue;
        }
        must(symbol <= 285, "a symbol");
        const uint32_t length = symbol == 285 ? 258 : take_value(in, symbol - 257, 2) + 3;
        const uint32_t slot = distances.take(in);
        must(slot < 30, "a distance's slot");
        const size_t distance = take_value(in, slot, 1) + size_t{1};
        must(distance <= out.size(), "a distance");
        for (uint32_t i = 0; i < length; i++)
            out += out[out.size() - distance];
    }
}

void take_fixed(bit_reader &in, std::string &out)
{
    std::vector<uint32_t> sizes(288, 8);
    for (size_t i = 144; i < 280; i++)
        sizes[i] = i < 256 ? 9 : 7;
    take_coded(in, prefix_code(sizes), prefix_code(std::vector<uint32_t>(32, 5)), out);
}

void take_dynamic(bit_reader &in, std::string &out)
{
    static const uint32_t order[] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                     11, 4,  12, 3, 13, 2, 14, 1, 15};
    const uint32_t symbol_count = in.take(5) + 257;
    const uint32_t distance_count = in.take(5) + 1;
    const uint32_t size_count = in.take(4) + 4;
    std::vector<uint32_t> size_sizes(19), sizes;
    for (uint32_t i = 0; i < size_count; i++)
        size_sizes[order[i]] = in.take(3);
    const prefix_code size_code(size_sizes);
    must(symbol_count <= 286 && distance_count <= 30, "the number of codes");
    while (sizes.size() < symbol_count + distance_count) {
        const uint32_t symbol = size_code.take(in);
        if (symbol < 16) {
            sizes.push_back(symbol);
            continue;
        }
        must(symbol != 16 || !sizes.empty(), "nothing to repeat");
        const uint32_t size = symbol == 16 ? sizes.back() : 0;
        const uint32_t run = symbol == 16   ? in.take(2) + 3
                             : symbol == 17 ? in.take(3) + 3
                                            : in.take(7) + 11;
        sizes.insert(sizes.end(), run, size);
    }
    must(sizes.size() == symbol_count + distance_count, "a run of sizes");
    const auto middle = sizes.begin() + symbol_count;
    take_coded(in, prefix_code({sizes.begin(), middle}), prefix_code({middle, sizes.end()}), out);
}

uint32_t crc_of(const std::string &text)
{
    uint32_t crc = 0xFFFFFFFF;
    for (char c : text) {
        crc ^= static_cast<uint8_t>(c);
        for (int i = 0; i < 8; i++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
    }
    return ~crc;
}

} // namespace

std::string inflated(const std::string &bytes, size_t *used)
{
    bit_reader in{bytes};
    std::string out;
    for (bool is_last = false; !is_last;) {
        is_last = in.take(1);
        const uint32_t kind = in.take(2);
        must(kind < 3, "a block's kind");
        if (kind == 0) take_stored(in, out);
        if (kind == 1) take_fixed(in, out);
        if (kind == 2) take_dynamic(in, out);
    }
    *used = (in.at + 7) / 8;
    return out;
}

std::string gunzipped(const std::string &bytes)
{
    size_t used = 0;
    must(bytes.size() > 10 && bytes.compare(0, 4, std::string("\x1f\x8b\x08\0", 4)) == 0,
         "gzip's head");
    std::string out = inflated(bytes.substr(10), &used);
    const std::string end = bytes.substr(10 + used);
    bit_reader in{end};
    must(end.size() == 8, "something is behind it");
    must(in.take(32) == crc_of(out), "its checksum");
    must(in.take(32) == static_cast<uint32_t>(out.size()), "its size");
    return out;
}
