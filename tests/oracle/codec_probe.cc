// SPDX-License-Identifier: Apache-2.0
// cairn_codec_probe encode CONFIG ITEM_SIZE: a chunk on stdin, as stored on stdout.
// cairn_codec_probe decode CONFIG SIZE: a stored chunk on stdin, its SIZE bytes on stdout.
#include <iostream>
#include <iterator>
#include <string>

#include "cairn/codec/registry.h"

namespace {

int fail(const cairn::Error& error) {
  std::cerr << error.reason() << ": " << error.to_string() << '\n';
  return 1;
}

int probe(const std::string& verb, const cairn::Json& config, std::size_t number) {
  const std::string input(std::istreambuf_iterator<char>(std::cin), {});
  const bool encode = verb == "encode";
  const auto codec = cairn::codec::make_codec(config, encode ? number : 1);
  if (!codec) return fail(codec.error());
  if (encode) {
    const auto stored = (*codec)->encode(cairn::as_bytes(input));
    if (!stored) return fail(stored.error());
    std::cout << cairn::as_text(stored->bytes());
    return 0;
  }
  std::string raw(number, '\0');
  const auto done =
      (*codec)->decode(cairn::as_bytes(input), std::as_writable_bytes(std::span(raw)));
  if (!done) return fail(done.error());
  std::cout << raw;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto config = cairn::parse_json(argc == 4 ? argv[2] : "");
  if (!config) {
    std::cerr << "usage: cairn_codec_probe encode CONFIG ITEM_SIZE | decode CONFIG SIZE\n";
    return 2;
  }
  return probe(argv[1], *config, std::stoul(argv[3]));
}
