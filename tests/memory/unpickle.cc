#include "tests/memory/unpickle.h"

namespace
{

using value = std::shared_ptr<pickled>;

struct machine {
    const std::string &bytes;
    size_t at = 0;
    std::vector<value> stack;
    std::vector<size_t> marks;
    std::vector<value> memo;
    std::string why;

    uint64_t number(size_t size)
    {
        uint64_t n = 0;
        for (size_t i = 0; i < size; i++, at++)
            if (at < bytes.size() && i < 8)
                n |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[at])) << 8 * i;
        return n;
    }

    void push(pickled made)
    {
        stack.push_back(std::make_shared<pickled>(std::move(made)));
    }

    void push_number(uint64_t n)
    {
        pickled made;
        made.kind = pickled::INT;
        made.number = n;
        push(made);
    }

    void push_text(uint64_t size)
    {
        pickled made;
        made.kind = pickled::TEXT;
        if (size > bytes.size() - at) {
            why = "a text goes beyond the end";
            return;
        }
        made.text = bytes.substr(at, size);
        at += size;
        push(made);
    }

    void push_memo(uint64_t i)
    {
        if (i >= memo.size())
            why = "nothing has this number";
        else
            stack.push_back(memo[i]);
    }

    std::vector<value> pop_mark()
    {
        std::vector<value> items;
        if (marks.empty()) {
            why = "there is no mark";
            return items;
        }
        items.assign(stack.begin() + static_cast<ptrdiff_t>(marks.back()), stack.end());
        stack.resize(marks.back());
        marks.pop_back();
        return items;
    }

    void appends()
    {
        const std::vector<value> items = pop_mark();
        if (items.size() > 1000)
            why = "too many at once";
        else if (stack.empty() || stack.back()->kind != pickled::LIST)
            why = "appended to what is no list";
        else
            stack.back()->items.insert(stack.back()->items.end(), items.begin(), items.end());
    }

    void dict()
    {
        const std::vector<value> items = pop_mark();
        pickled made;
        made.kind = pickled::DICT;
        if (items.size() % 2) why = "a key without a value";
        for (size_t i = 0; i + 1 < items.size(); i += 2)
            if (items[i]->kind != pickled::TEXT ||
                !made.fields.emplace(items[i]->text, items[i + 1]).second)
                why = "a key that is no text, or twice there";
        push(made);
    }

    void tuple(size_t size)
    {
        pickled made;
        made.kind = pickled::TUPLE;
        if (stack.size() < size) {
            why = "too little for a tuple";
            return;
        }
        made.items.assign(stack.end() - static_cast<ptrdiff_t>(size), stack.end());
        stack.resize(stack.size() - size);
        push(made);
    }

    void push_kind(int kind, uint64_t n)
    {
        pickled made;
        made.kind = static_cast<decltype(made.kind)>(kind);
        made.number = n;
        push(made);
    }

    void step(unsigned char code)
    {
        switch (code) {
        case 0x80:
            return number(1) == 4 ? void() : void(why = "another protocol");
        case 0x8a:
            return push_number(number(number(1)));
        case 'K':
            return push_number(number(1));
        case 'M':
            return push_number(number(2));
        case 'J':
            return push_number(number(4));
        case 0x8c:
            return push_text(number(1));
        case 'X':
            return push_text(number(4));
        case 'h':
            return push_memo(number(1));
        case 'j':
            return push_memo(number(4));
        case 0x94:
            return memo.push_back(stack.back());
        case 'N':
            return push_kind(pickled::NONE, 0);
        case 0x88:
            return push_kind(pickled::BOOL, 1);
        case 0x89:
            return push_kind(pickled::BOOL, 0);
        case '(':
            return marks.push_back(stack.size());
        case ']':
            return push_kind(pickled::LIST, 0);
        case 'e':
            return appends();
        case 'd':
            return dict();
        case 0x86:
            return tuple(2);
        default:
            why = "opcode " + std::to_string(code);
            return;
        }
    }
};

const pickled nothing;

} // namespace

const pickled &pickled::operator[](const std::string &name) const
{
    const auto found = fields.find(name);
    return found == fields.end() ? nothing : *found->second;
}

const pickled &pickled::operator[](size_t i) const
{
    return i < items.size() ? *items[i] : nothing;
}

std::shared_ptr<pickled> unpickle(const std::string &bytes, std::string *why)
{
    machine m{bytes, 0, {}, {}, {}, ""};
    while (m.why.empty() && m.at < bytes.size()) {
        const auto code = static_cast<unsigned char>(bytes[m.at++]);
        if (code != '.') {
            m.step(code);
        } else if (m.at == bytes.size() && m.stack.size() == 1 && m.marks.empty()) {
            return m.stack[0];
        } else {
            m.why = "more than one value, or something behind it";
        }
    }
    *why = (m.why.empty() ? "it does not end" : m.why) + " at " + std::to_string(m.at);
    return nullptr;
}
