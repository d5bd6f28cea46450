// SPDX-License-Identifier: Apache-2.0
// A whole checkpoint, opened, verified, loaded and compared with itself. The input is its files:
//
//   === w/.zarray
//   {"zarr_format":2, ...}
//
// In them @{N:text@} stands for N times the text, with the number in the place of each #, so that
// short inputs reach what is slow, deep or large only in long ones. Lengths of safetensors headers,
// and the sums by which a record knows its manifests, are put right.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "cairn/inspect/diff.h"
#include "cairn/inspect/verify.h"
#include "cairn/layout/open_checkpoint.h"
#include "cairn/load/load.h"
#include "cairn/storage/open.h"
#include "fuzz/manifest_digest.h"

namespace {

using cairn::Json;
using cairn::Result;
using Files = std::map<std::string, std::string>;

constexpr const char* kPath = "memory://fuzz/checkpoint";
constexpr std::size_t kMostTimes = std::size_t{1} << 18;
constexpr std::size_t kMostBytes = std::size_t{16} << 20;
/// Repetitions beyond this take a second or so: few inputs of one process have them.
constexpr std::size_t kFewTimes = 64;
int g_long_inputs_left = 40;

std::string numbered(std::string_view text, std::size_t number) {
  std::string out;
  for (const char c : text) c == '#' ? out += std::to_string(number) : out += c;
  return out;
}

std::string expanded(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t begin = text.find("@{");
    const std::size_t colon = text.find(':', begin);
    const std::size_t end = text.find("@}", colon);
    out += text.substr(0, begin);
    if (begin == text.npos || colon == text.npos || end == text.npos) return out;
    std::size_t times = 0;
    std::from_chars(text.data() + begin + 2, text.data() + colon, times);
    if (times > kFewTimes && --g_long_inputs_left < 0) times = kFewTimes;
    const std::string_view part = text.substr(colon + 1, end - colon - 1);
    for (std::size_t n = 0; n < std::min(times, kMostTimes) && out.size() < kMostBytes; ++n)
      out += numbered(part, n);
    text.remove_prefix(end + 2);
  }
}

Files files_of(std::string_view input) {
  constexpr std::string_view kBegin = "=== ";
  Files files;
  while (input.starts_with(kBegin)) {
    input.remove_prefix(kBegin.size());
    const std::size_t line = std::min(input.find('\n'), input.size());
    const std::string name(input.substr(0, line));
    input.remove_prefix(std::min(line + 1, input.size()));
    const std::size_t next = input.find("\n=== ");
    files[name] = expanded(input.substr(0, next));
    input.remove_prefix(next == input.npos ? input.size() : next + 1);
  }
  return files;
}

/// The data follow the header's last brace.
void put_length(std::string& safetensors) {
  const std::size_t last = safetensors.rfind('}');
  const std::uint64_t length = last == std::string::npos ? safetensors.size() : last + 1;
  std::string front;
  for (int shift = 0; shift < 64; shift += 8) front += static_cast<char>(length >> shift & 0xff);
  safetensors.insert(0, front);
}

void seal(Files& files) {
  const auto record_file = files.find("cairn.json");
  if (record_file == files.end()) return;
  auto record = cairn::parse_json(record_file->second);
  Json* prefixes = nullptr;
  if (!record || record->object() == nullptr) return;
  for (auto& [name, member] : *record->object()) {
    if (name == "prefixes" && member.object() != nullptr) prefixes = &member;
  }
  if (prefixes == nullptr) return;
  for (auto& [name, prefix] : *prefixes->object()) {
    const Json* where = prefix.find("manifest");
    if (where == nullptr || where->text() == nullptr) continue;
    const auto file = files.find(*where->text());
    if (file == files.end()) continue;
    auto manifest = cairn::parse_json(file->second, {.depth = 700});
    if (manifest && manifest->object() != nullptr) {
      manifest->set("digest", cairn::fuzz::digest_of(*manifest));
      file->second = cairn::dump_json(*manifest);
    }
    prefix.set("bytes", std::uint64_t{file->second.size()});
    prefix.set("sha256", cairn::sha256_hex(cairn::as_bytes(file->second)));
  }
  record_file->second = cairn::dump_json(*record);
}

/// An exception that became an error is a mistake all the same.
template <typename T>
bool check(const Result<T>& result) {
  if (!result && result.error().reason() == "async/exception") std::abort();
  return result.has_value();
}

void use(const cairn::Checkpoint& checkpoint, cairn::Runtime& runtime) {
  std::uint64_t chunks = 0;
  std::uint64_t bytes = 0;
  bool digests = false;
  for (const cairn::OpenedPrefix& prefix : checkpoint.prefixes) {
    for (const cairn::ManifestArray& array : prefix.manifest.arrays) {
      chunks += array.stored.chunk_count();
      bytes += array.stored.chunk_count() * array.stored.chunk_memory_bytes();
      digests |= !array.sha256.empty();
    }
  }
  constexpr std::uint64_t kSmall = std::uint64_t{1} << 20;
  if (chunks > kSmall || (digests && bytes > kSmall)) return;  // allowed, and slow
  check(cairn::verify(checkpoint, {}, runtime));
  if (bytes > kSmall) return;  // whoever loads gets the arrays
  check(cairn::diff(checkpoint, checkpoint, {}, runtime));
  for (const cairn::OpenedPrefix& prefix : checkpoint.prefixes) {
    check(cairn::load(checkpoint, {.prefix = prefix.name}, runtime));
    if (checkpoint.prefixes.size() > kFewTimes) return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static cairn::Runtime runtime({.threads = 1});
  Files files = files_of({reinterpret_cast<const char*>(data), size});
  for (auto& [name, content] : files) {
    if (name.ends_with(".safetensors")) put_length(content);
  }
  seal(files);
  const auto store = cairn::storage::open_store(*cairn::parse_uri(kPath), {.file_system = nullptr});
  if (!store) std::abort();
  for (const auto& [name, content] : files)
    (*store)->put(name, cairn::as_bytes(content), {}).ignore_error("no name of an object");
  const auto opened = cairn::open_checkpoint(kPath, runtime);
  if (check(opened)) use(*opened, runtime);
  const auto left = (*store)->list("", true);
  if (!left) std::abort();
  for (const auto& entry : *left) (*store)->remove(entry.key).ignore_error("a directory");
  return 0;
}
