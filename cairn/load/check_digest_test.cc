// SPDX-License-Identifier: Apache-2.0
#include "cairn/load/check_digest.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "cairn/base/sha256.h"
#include "cairn/format/chunk_codec.h"
#include "cairn/storage/memory/memory_store.h"
#include "cairn/testing/must.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

using testing::must;
using testing::reason;

format::StoredArray bytes_of(const Shape& shape, const Shape& chunk,
                             const format::CodecSpec& codec) {
  format::StoredArray stored;
  stored.dtype = DType::kUint8;
  stored.shape = shape;
  stored.chunk_shape = chunk;
  stored.codec = codec;
  stored.key = "w";
  return stored;
}

/// A prefix of one array of another system, which says the digest of `values`.
OpenedPrefix prefix_of(const format::StoredArray& stored, ByteSpan values) {
  OpenedPrefix prefix;
  prefix.foreign = true;
  prefix.store = storage::make_memory_store();
  must(prefix.store->put("w/.zarray", {}, {}));
  prefix.manifest.arrays.resize(1);
  prefix.manifest.arrays[0].stored = stored;
  prefix.manifest.arrays[0].sha256 = sha256_hex(values);
  return prefix;
}

/// Writes the chunks of an array of bytes, but for `missing`.
void write_chunks(const OpenedPrefix& prefix, const std::string& values, std::uint64_t missing) {
  const format::StoredArray& stored = prefix.manifest.arrays[0].stored;
  const auto codec = must(format::ChunkCodec::make(stored));
  for (std::uint64_t n = 0; n < stored.chunk_count(); ++n) {
    if (n == missing) continue;
    const Box box = stored.chunk_box(n);
    std::string cells(stored.chunk_memory_bytes(), '?');
    const Strides strides = stored.chunk_strides();
    for (Index i = box.begin[0]; i < box.end[0]; ++i) {
      for (Index j = box.begin[1]; j < box.end[1]; ++j) {
        const Index at = (i - box.begin[0]) * strides[0] + (j - box.begin[1]) * strides[1];
        cells[static_cast<std::size_t>(at)] =
            values[static_cast<std::size_t>(i * stored.shape[1] + j)];
      }
    }
    const Buffer encoded = must(codec.encode(as_bytes(cells)));
    must(prefix.store->put(stored.chunk_key(n), encoded.bytes(), {}));
  }
}

TEST(CheckDigest, IsOfTheElementsHoweverTheyAreStored) {
  constexpr Index kRows = 7;
  constexpr Index kColumns = 5;
  Runtime runtime({.threads = 1});
  for (const auto& codec : {format::CodecSpec::raw(), format::CodecSpec::zstd()}) {
    for (const Shape& chunk : {Shape{3, 2}, Shape{7, 2}, Shape{2, 5}, Shape{8, 8}}) {
      for (const bool fortran : {false, true}) {
        SCOPED_TRACE(codec.name() + " " + to_string(chunk) + (fortran ? " F" : " C"));
        format::StoredArray stored = bytes_of({kRows, kColumns}, chunk, codec);
        stored.fortran_order = fortran;
        // The last chunk is missing where there are several: it holds zeros.
        const std::uint64_t last = stored.chunk_count() - 1;
        std::string values;
        for (char n = 1; n <= kRows * kColumns; ++n) values += n;
        if (last > 0) {
          const Box gone = stored.chunk_box(last);
          for (Index i = gone.begin[0]; i < gone.end[0]; ++i) {
            for (Index j = gone.begin[1]; j < gone.end[1]; ++j)
              values[static_cast<std::size_t>(i * kColumns + j)] = 0;
          }
        }
        const OpenedPrefix prefix = prefix_of(stored, as_bytes(values));
        write_chunks(prefix, values, last > 0 ? last : 1);
        const auto checked = check_digest(prefix, {}, runtime);
        EXPECT_TRUE(checked) << checked.error().to_string();
        values[0] = 'x';
        EXPECT_EQ(reason(check_digest(prefix_of(stored, as_bytes(values)), {}, runtime)),
                  "load/sha256");
      }
    }
  }
}

TEST(CheckDigest, MakesNoArrayOfWhatIsNotThere) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need more address space than the test leaves";
#endif
  constexpr Index kBytes = 256 * kMiB;
  Runtime runtime({.threads = 1});
  for (const auto& codec : {format::CodecSpec::raw(), format::CodecSpec::zstd()}) {
    const OpenedPrefix prefix = prefix_of(bytes_of({kBytes}, {kBytes}, codec), {});
    rlimit before{};
    ::getrlimit(RLIMIT_AS, &before);
    rlimit little = before;
    little.rlim_cur = std::stoull(testing::read_file("/proc/self/statm")) * 4096 + kBytes / 2;
    ::setrlimit(RLIMIT_AS, &little);
    const auto checked = check_digest(prefix, {}, runtime);
    ::setrlimit(RLIMIT_AS, &before);
    EXPECT_EQ(reason(checked), "load/sha256");
  }
}

}  // namespace
}  // namespace cairn
