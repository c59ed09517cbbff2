/* inflate.h: reads gzip, strictly and slowly, with nothing of the encoder's and where there is no zlib. Throws
 * std::runtime_error where something is wrong. */
#ifndef INFLATE_H
#define INFLATE_H

#include <string>

/* Of blocks up to a last one; the number of bytes that they took goes to USED. */
std::string inflated(const std::string &bytes, size_t *used);

/* Of one gzip stream, with its checksum and size compared. */
std::string gunzipped(const std::string &bytes);

#endif
