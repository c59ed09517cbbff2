# Writes the page of a report, the concatenation of FILES, to OUT as a C array. The array consists
# of numbers, so nothing in a page has to be escaped for C or for CMake.
set(_bytes "")
foreach(_file IN LISTS FILES)
  file(READ ${_file} _hex HEX)
  string(APPEND _bytes "${_hex}")
endforeach()
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," _bytes "${_bytes}")
string(REGEX REPLACE "((0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,))" "\\1\n" _bytes "${_bytes}")
file(WRITE ${OUT} "#include \"writers/report/report_page.h\"\n
const unsigned char kpti_report_page[] = {\n${_bytes}};
const size_t kpti_report_page_bytes = sizeof kpti_report_page;\n")
