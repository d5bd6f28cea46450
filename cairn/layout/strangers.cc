// SPDX-License-Identifier: Apache-2.0
#include "cairn/layout/strangers.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "cairn/base/bytes.h"

namespace cairn {

namespace {

using std::string_view_literals::operator""sv;

constexpr const char* kSaveItAgain = "load it with that program and save the tree with cairn";

struct FileKind {
  std::string_view begins;
  const char* reason;
  const char* what;
};

constexpr auto kFiles = std::to_array<FileKind>({
    {"PK\3\4"sv, "stranger/zip", "a zip archive, as torch.save() and numpy.savez() write it"},
    {"\x93NUMPY"sv, "stranger/npy", "a NumPy .npy file"},
    {"\x80\2"sv, "stranger/pickle", "a pickle, as Python and older PyTorch write it"},
    {"\x80\3"sv, "stranger/pickle", "a pickle"},
    {"\x80\4"sv, "stranger/pickle", "a pickle"},
    {"\x80\5"sv, "stranger/pickle", "a pickle"},
    {"\x89HDF\r\n"sv, "stranger/hdf5", "an HDF5 file, as Keras and h5py write it"},
    {"GGUF"sv, "stranger/gguf", "a GGUF file, as llama.cpp reads it"},
    {"\x1f\x8b"sv, "stranger/gzip", "a gzip file, to be unpacked first"},
});

struct DirectoryKind {
  std::string_view ends;  // of the name of a file in it
  const char* reason;
  const char* what;
};

constexpr auto kDirectories = std::to_array<DirectoryKind>({
    {"_CHECKPOINT_METADATA", "stranger/orbax", "an Orbax checkpoint"},
    {"_METADATA", "stranger/orbax", "an item of an Orbax checkpoint"},
    {"manifest.ocdbt", "stranger/ocdbt", "an OCDBT database, as TensorStore and Orbax write it"},
    {".distcp", "stranger/torch-dcp", "a checkpoint of torch.distributed.checkpoint"},
    {"zarr.json", "stranger/zarr3", "zarr v3; zarr v2 can be read"},
    {".bin.index.json", "stranger/pytorch-bin", "a set of PyTorch .bin files"},
    {"pytorch_model.bin", "stranger/pytorch-bin", "a model in a PyTorch .bin file"},
});

Error refusal(const char* reason, const char* what) {
  return Error(Code::kUnimplemented, reason,
               fmt::format("this is {}, which cairn does not read; {}", what, kSaveItAgain));
}

constexpr std::size_t kFirstBytes = 9;

/// A map whose first key is a text.
bool is_msgpack(std::string_view bytes) {
  const auto map = static_cast<unsigned char>(bytes[0]);
  const auto key = static_cast<unsigned char>(bytes[1]);
  return map > 0x80 && map < 0x90 && key > 0xa0 && key < 0xc0;
}

constexpr FileKind kMsgpack = {"", "stranger/msgpack", "a msgpack file, as flax writes it"};

const FileKind* find_kind(storage::Store& store, const std::string& name) {
  const auto object = store.open(name);
  std::array<std::byte, kFirstBytes> first{};
  if (!object || !(*object)->read_at(0, first)) return nullptr;
  const std::string_view bytes = as_text(first);
  if (bytes.back() == '{') return nullptr;  // the header of safetensors begins here
  const auto row = std::ranges::find_if(
      kFiles, [&](const FileKind& kind) { return bytes.starts_with(kind.begins); });
  if (row != kFiles.end()) return &*row;
  return is_msgpack(bytes) ? &kMsgpack : nullptr;
}

}  // namespace

std::optional<Error> recognise_file(storage::Store& store, const std::string& name) {
  const FileKind* kind = find_kind(store, name);
  return kind != nullptr ? std::optional(refusal(kind->reason, kind->what)) : std::nullopt;
}

std::optional<std::string_view> kind_of_file(storage::Store& store, const std::string& name) {
  const FileKind* kind = find_kind(store, name);
  return kind != nullptr ? std::optional<std::string_view>(kind->what) : std::nullopt;
}

std::optional<Error> recognise_directory(const std::vector<std::string>& files) {
  for (const DirectoryKind& kind : kDirectories) {
    const auto found = std::ranges::find_if(
        files, [&](const std::string& file) { return file.ends_with(kind.ends); });
    if (found != files.end()) return refusal(kind.reason, kind.what);
  }
  return std::nullopt;
}

}  // namespace cairn
