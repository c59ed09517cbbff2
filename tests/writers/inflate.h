/* inflate.h: reads gzip, strictly and slowly, without code of the encoder and without zlib. Throws
 * std::runtime_error if the data is invalid. */
#ifndef INFLATE_H
#define INFLATE_H

#include <string>

/* Inflates blocks up to the last one; USED receives the number of bytes read. */
std::string inflated(const std::string &bytes, size_t *used);

/* Reads one gzip stream, and checks its checksum and size. */
std::string gunzipped(const std::string &bytes);

#endif
