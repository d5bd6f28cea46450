// SPDX-License-Identifier: Apache-2.0
// cairn_safetensors_probe judge: files on stdin, each behind its length in four bytes; on stdout, a
// line for each: its tensors as JSON, or the reason why it is refused.
// cairn_safetensors_probe rewrite: a file on stdin, the same as Cairn writes it on stdout.
#include <iostream>
#include <iterator>
#include <string>

#include "cairn/base/json.h"
#include "cairn/format/safetensors/header_parser.h"
#include "cairn/format/safetensors/reader.h"
#include "cairn/format/safetensors/writer.h"
#include "cairn/storage/memory/memory_store.h"

namespace {

using namespace cairn::format::safetensors;

cairn::Result<Header> parse_file(std::string_view file) {
  CAIRN_TRY_ASSIGN(const std::uint64_t length,
                   parse_header_length(cairn::as_bytes(file), file.size()));
  return parse_header(file.substr(kLengthBytes, length), file.size());
}

std::string judge(std::string_view file) {
  const auto header = parse_file(file);
  if (!header) return cairn::dump_json(header.error().reason());
  cairn::Json::Array tensors;
  for (const Tensor& tensor : header->tensors) {
    cairn::Json::Array shape(tensor.shape.begin(), tensor.shape.end());
    tensors.push_back(cairn::Json::Array{tensor.name, *dtype_string(tensor.dtype), std::move(shape),
                                         header->data_start + tensor.begin,
                                         header->data_start + tensor.end});
  }
  return cairn::dump_json(tensors);
}

void judge_all(std::string_view input) {
  while (!input.empty()) {
    std::size_t size = 0;
    for (std::size_t i = 4; i-- > 0;) size = size * 256 + static_cast<unsigned char>(input[i]);
    std::cout << judge(input.substr(4, size)) << '\n';
    input.remove_prefix(4 + size);
  }
}

cairn::Result<void> rewrite(std::string_view file) {
  CAIRN_TRY_ASSIGN(const Header header, parse_file(file));
  const auto store = cairn::storage::make_memory_store();
  CAIRN_TRY_ASSIGN(auto writer, Writer::create(*store, "k", header.tensors, header.metadata));
  for (const Tensor& to : writer.tensors()) {
    for (const Tensor& from : header.tensors) {
      if (from.name != to.name) continue;
      const auto data = cairn::as_bytes(file).subspan(header.data_start + from.begin);
      CAIRN_TRY(writer.write(to, 0, data.first(from.end - from.begin)));
    }
  }
  CAIRN_TRY(writer.finish());
  CAIRN_TRY_ASSIGN(const auto written, cairn::storage::read_all(*store, "k", cairn::kGiB));
  std::cout << cairn::as_text(written.bytes());
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const std::string verb = argc == 2 ? argv[1] : "";
  const std::string input(std::istreambuf_iterator<char>(std::cin), {});
  if (verb == "judge") {
    judge_all(input);
  } else if (verb == "rewrite") {
    const auto done = rewrite(input);
    if (!done) std::cerr << done.error().to_string() << '\n';
    return done ? 0 : 1;
  } else {
    std::cerr << "usage: cairn_safetensors_probe judge | rewrite\n";
    return 2;
  }
  return 0;
}
