// SPDX-License-Identifier: Apache-2.0
// cairn_cast_probe FROM TO: elements of one float type on stdin, of the other on stdout.
#include <cstdio>
#include <string>

#include "cairn/array/cast.h"

namespace {

std::string read_all(std::FILE* file) {
  std::string bytes;
  char block[1 << 16];
  for (std::size_t got = 0; (got = std::fread(block, 1, sizeof(block), file)) > 0;) {
    bytes.append(block, got);
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  const auto from = argc == 3 ? cairn::parse_dtype(argv[1]) : std::nullopt;
  const auto to = argc == 3 ? cairn::parse_dtype(argv[2]) : std::nullopt;
  if (!from || !to || !cairn::can_cast(*from, *to)) {
    std::fputs("usage: cairn_cast_probe FROM TO < elements > elements\n", stderr);
    return 2;
  }
  const std::string input = read_all(stdin);
  std::string output(input.size() / cairn::item_size(*from) * cairn::item_size(*to), '\0');
  cairn::cast_elements(*from, cairn::as_bytes(input), *to,
                       std::as_writable_bytes(std::span(output)));
  return std::fwrite(output.data(), 1, output.size(), stdout) == output.size() ? 0 : 1;
}
