/* scratch.h: a folder for one test, which is empty at first and removed afterwards. */
#ifndef SCRATCH_H
#define SCRATCH_H

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

class Scratch : public testing::Test
{
  protected:
    Scratch()
    {
        char name[] = "/tmp/kpt-writers-XXXXXX";
        if (mkdtemp(name)) where = name;
    }
    ~Scratch() override
    {
        std::error_code ignored;
        if (!where.empty()) std::filesystem::remove_all(where, ignored);
    }

    std::string folder() const
    {
        return where;
    }
    std::string path(const std::string &name) const
    {
        return where + "/" + name;
    }
    bool exists(const std::string &name) const
    {
        return std::filesystem::exists(path(name));
    }
    /* Returns the number of entries in the folder. */
    size_t files() const
    {
        auto all = std::filesystem::directory_iterator(where);
        return static_cast<size_t>(std::distance(begin(all), end(all)));
    }
    std::string content(const std::string &name) const
    {
        std::ifstream file(path(name), std::ios::binary);
        std::ostringstream text;
        text << file.rdbuf();
        return text.str();
    }
    void make_file(const std::string &name, const std::string &text) const
    {
        std::ofstream(path(name), std::ios::binary) << text;
    }

  private:
    std::string where;
};

#endif
