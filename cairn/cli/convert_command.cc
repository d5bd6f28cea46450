// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cairn/base/human.h"
#include "cairn/cli/commands.h"
#include "cairn/cli/exit_codes.h"
#include "cairn/cli/open_argument.h"
#include "cairn/cli/terminal.h"
#include "cairn/inspect/convert.h"

namespace cairn::cli {

namespace {

Result<SaveOptions> save_options(const ConvertArgs& args, const Checkpoint& from) {
  SaveOptions options;
  options.layout = args.layout;
  if (options.layout.empty()) {
    // The other one: there are two.
    const bool zarr = from.prefixes.empty() || from.prefixes[0].manifest.layout == kZarr2Layout;
    options.layout = zarr ? kSafetensorsLayout : kZarr2Layout;
  }
  if (!args.dtype.empty()) {
    options.float_dtype = parse_dtype(args.dtype);
    if (!options.float_dtype) {
      return Error(Code::kInvalidArgument, "convert/dtype",
                   fmt::format("unknown dtype '{}'; names are JAX's, such as bfloat16 or float32",
                               args.dtype));
    }
  }
  if (!args.codec.empty()) {
    CAIRN_TRY_ASSIGN(options.codec, format::CodecSpec::parse(args.codec));
  }
  if (!args.shard_size.empty()) {
    CAIRN_TRY_ASSIGN(options.shard_size, parse_bytes(args.shard_size));
  }
  if (!args.chunk_size.empty()) {
    CAIRN_TRY_ASSIGN(options.chunk_bytes, parse_bytes(args.chunk_size));
  }
  options.enable_validation = args.sha256;
  options.overwrite = args.overwrite;
  return options;
}

Result<SaveReport> run(const ConvertArgs& args, const Terminal& terminal, Runtime& runtime) {
  if (args.to.starts_with("memory://")) {
    return Error(Code::kInvalidArgument, "convert/not-kept",
                 fmt::format("{} is gone when this command ends; give a path", args.to));
  }
  CAIRN_TRY_ASSIGN(const Checkpoint from, open_argument(args.from, terminal, runtime));
  CAIRN_TRY_ASSIGN(SaveOptions save, save_options(args, from));
  save.progress = terminal.progress("convert");
  return convert(from, args.to, {.prefix = args.prefix, .save = std::move(save)}, runtime);
}

}  // namespace

int convert_command(const ConvertArgs& args, const Terminal& terminal, Runtime& runtime) {
  const auto report = run(args, terminal, runtime);
  if (!report) return terminal.fail(report.error());
  if (terminal.json()) {
    terminal.document(
        Json::Object{{"path", report->path},
                     {"arrays", report->arrays},
                     {"bytes", report->bytes},
                     {"stored_bytes", report->stored_bytes},
                     {"digests", Json::Array(report->digests.begin(), report->digests.end())}});
  } else {
    terminal.line(fmt::format("wrote {}: {}, {}, {} stored", report->path,
                              counted(report->arrays, "array"), format_bytes(report->bytes),
                              format_bytes(report->stored_bytes)));
  }
  return kGood;
}

}  // namespace cairn::cli
