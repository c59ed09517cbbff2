#include "tests/writers/strict_json.h"

#include <stdexcept>

namespace
{

/* Returns the size in bytes of the character at AT, or 0 if it is invalid. Written independently of the
 * product's own table. */
size_t character_size(const std::string &s, size_t at)
{
    auto byte = [&](size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u; };
    unsigned first = byte(at);
    if (first < 0x80) return 1;
    size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    unsigned code = first & (0xFFu >> (size + 1));
    if (first < 0xC0 || first > 0xF7) return 0;
    for (size_t i = 1; i < size; i++) {
        if ((byte(at + i) & 0xC0) != 0x80) return 0;
        code = code << 6 | (byte(at + i) & 0x3F);
    }
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < least[size] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return 0;
    return size;
}

class reader
{
  public:
    explicit reader(const std::string &text) : s(text) {}

    json read_all()
    {
        json value = read_value();
        skip_space();
        if (at != s.size()) fail("something behind the end");
        return value;
    }

  private:
    [[noreturn]] void fail(const std::string &why) const
    {
        throw std::runtime_error("at byte " + std::to_string(at) + ": " + why);
    }
    char peek() const
    {
        if (at >= s.size()) fail("it ends too early");
        return s[at];
    }
    void skip_space()
    {
        while (at < s.size() && (s[at] == ' ' || s[at] == '\t' || s[at] == '\r' || s[at] == '\n'))
            at++;
    }
    void expect(const std::string &word)
    {
        if (s.compare(at, word.size(), word) != 0) fail("not " + word);
        at += word.size();
    }

    json read_word(const std::string &word, json::kind kind)
    {
        json value;
        expect(word);
        value.is = kind;
        value.text = word;
        return value;
    }

    json read_value()
    {
        skip_space();
        switch (peek()) {
        case '{':
            return read_object();
        case '[':
            return read_array();
        case '"': {
            json value;
            value.is = json::STRING;
            value.text = read_string();
            return value;
        }
        case 't':
            return read_word("true", json::TRUTH);
        case 'f':
            return read_word("false", json::TRUTH);
        case 'n':
            return read_word("null", json::NOTHING);
        default:
            return read_number();
        }
    }

    void read_digits()
    {
        size_t begin = at;
        while (at < s.size() && s[at] >= '0' && s[at] <= '9')
            at++;
        if (at == begin) fail("no digit");
    }

    json read_number()
    {
        json value;
        size_t begin = at;
        if (peek() == '-') at++;
        if (peek() == '0')
            at++;
        else
            read_digits();
        if (at < s.size() && s[at] == '.') {
            at++;
            read_digits();
        }
        if (at < s.size() && s[at] == 'e') {
            at++;
            if (peek() == '-' || peek() == '+') at++;
            read_digits();
        }
        value.is = json::NUMBER;
        value.text = s.substr(begin, at - begin);
        return value;
    }

    /* Only the escapes that our writers use: a control character as \u00XX. */
    char read_unicode_escape()
    {
        std::string hex = s.substr(at, 4);
        if (hex.size() != 4 || hex.find_first_not_of("0123456789abcdef") != std::string::npos)
            fail("a bad \\u");
        at += 4;
        unsigned long code = std::stoul(hex, nullptr, 16);
        if (code >= 0x80) fail("\\u of a character that needs none");
        return static_cast<char>(code);
    }

    char read_escape()
    {
        static const std::string letters = "\"\\/bfnrt";
        static const std::string meanings = "\"\\/\b\f\n\r\t";
        char letter = peek();
        at++;
        if (letter == 'u') return read_unicode_escape();
        size_t found = letters.find(letter);
        if (found == std::string::npos) fail("an unknown escape");
        return meanings[found];
    }

    /* Copies plain characters, which are most of every string. */
    void copy_plain(std::string &out)
    {
        size_t begin = at;
        while (at < s.size() && s[at] >= ' ' && s[at] < 0x7F && s[at] != '"' && s[at] != '\\')
            at++;
        out.append(s, begin, at - begin);
    }

    std::string read_string()
    {
        std::string out;
        expect("\"");
        for (;;) {
            copy_plain(out);
            char c = peek();
            size_t size = character_size(s, at);
            if (c == '"') break;
            if (static_cast<unsigned char>(c) < 0x20) fail("a bare control character");
            if (!size) fail("no UTF-8");
            if (c == '\\') {
                at++;
                out += read_escape();
            } else {
                out.append(s, at, size);
                at += size;
            }
        }
        at++;
        return out;
    }

    json read_array()
    {
        json value;
        value.is = json::ARRAY;
        expect("[");
        skip_space();
        if (peek() == ']') {
            at++;
            return value;
        }
        for (;;) {
            value.items.push_back(read_value());
            skip_space();
            if (peek() == ']') break;
            expect(",");
        }
        at++;
        return value;
    }

    json read_object()
    {
        json value;
        value.is = json::OBJECT;
        expect("{");
        skip_space();
        if (peek() == '}') {
            at++;
            return value;
        }
        for (;;) {
            skip_space();
            std::string name = read_string();
            skip_space();
            expect(":");
            if (!value.members.emplace(name, read_value()).second) fail(name + " is there twice");
            skip_space();
            if (peek() == '}') break;
            expect(",");
        }
        at++;
        return value;
    }

    const std::string &s;
    size_t at = 0;
};

} // namespace

const json &json::operator[](std::string_view name) const
{
    static const json nothing;
    auto found = members.find(name);
    return found == members.end() ? nothing : found->second;
}

bool is_utf8(const std::string &bytes)
{
    for (size_t at = 0; at < bytes.size();) {
        size_t size = character_size(bytes, at);
        if (!size) return false;
        at += size;
    }
    return true;
}

json read_json(const std::string &text)
{
    return reader(text).read_all();
}
