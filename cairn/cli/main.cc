// SPDX-License-Identifier: Apache-2.0
// The command line: one row a verb. The work is done in the library, the printing in the verb's
// file.
#include <cstdio>
#include <functional>
#include <memory>
#include <sstream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <signal.h>

#include "cairn/async/caught.h"
#include "cairn/base/log.h"
#include "cairn/base/version.h"
#include "cairn/cli/commands.h"
#include "cairn/cli/exit_codes.h"
#include "cairn/cli/terminal.h"
#include "cairn/runtime/runtime.h"

namespace cairn::cli {
namespace {

/// Unlike CLI::Range, refuses NaN, and numbers that wrap around in an unsigned type.
CLI::Validator number_between(double least, double most) {
  const auto check = [least, most](const std::string& text) -> std::string {
    double number = 0;
    const bool good = CLI::detail::lexical_cast(text, number) && number >= least && number <= most;
    return good ? "" : fmt::format("'{}' is not a number from {} to {}", text, least, most);
  };
  return {check, fmt::format("{} to {}", least, most)};
}

/// What every verb takes.
struct Common {
  bool json = false;
  std::size_t threads = 0;
};

/// A verb that was chosen, with its arguments.
using Action = std::function<int(const Terminal&, Runtime&)>;

constexpr const char* kCheckpointHelp =
    "a checkpoint directory, a run directory (meaning its latest checkpoint), one array directory, "
    "a .safetensors file or a folder with parts";

CLI::App* add_verb(CLI::App& app, const char* name, const char* help, Common& common) {
  CLI::App* verb = app.add_subcommand(name, help)->group("Verbs");
  verb->add_flag("--json", common.json, "print one JSON document on standard output");
  verb->add_option("--threads", common.threads, "threads to use; 1 reads in order on one thread")
      ->check(number_between(0, 1024))
      ->capture_default_str();
  return verb;
}

void add_prefix(CLI::App* verb, std::optional<std::string>& prefix) {
  verb->add_option("--prefix", prefix, "only this tree of the checkpoint, such as model");
}

template <typename Args>
void on_chosen(CLI::App* verb, Action& action, const std::shared_ptr<Args>& args,
               int (*run)(const Args&, const Terminal&, Runtime&)) {
  verb->callback([&action, args, run] {
    action = [args, run](const Terminal& terminal, Runtime& runtime) {
      return run(*args, terminal, runtime);
    };
  });
}

/// Unlike CLI::PositiveNumber, whose message has limits of many digits.
CLI::Validator at_least_one() {
  const auto check = [](const std::string& text) -> std::string {
    std::int64_t number = 0;
    const bool good = CLI::detail::lexical_cast(text, number) && number >= 1;
    return good ? "" : fmt::format("'{}' is not a whole number of at least 1", text);
  };
  return {check, "N >= 1"};
}

void add_ls(CLI::App& app, Common& common, Action& action) {
  auto args = std::make_shared<LsArgs>();
  CLI::App* verb = add_verb(app, "ls", "list the checkpoints of a run, newest first", common);
  verb->add_option("PATH", args->path, "a run directory or one checkpoint")->capture_default_str();
  on_chosen(verb, action, args, ls_command);
}

void add_show(CLI::App& app, Common& common, Action& action) {
  auto args = std::make_shared<ShowArgs>();
  CLI::App* verb =
      add_verb(app, "show", "show the tree of a checkpoint: types, shapes, sizes, chunks", common);
  verb->add_option("CKPT", args->path, kCheckpointHelp)->required();
  verb->add_option("--depth", args->depth, "show no deeper levels")->check(at_least_one());
  add_prefix(verb, args->prefix);
  on_chosen(verb, action, args, show_command);
}

void add_cat(CLI::App& app, Common& common, Action& action) {
  auto args = std::make_shared<CatArgs>();
  CLI::App* verb = add_verb(
      app, "cat", "print values of one leaf or slice; reads only the bytes it needs", common);
  verb->add_option("CKPT", args->path, kCheckpointHelp)->required();
  verb->add_option("KEY", args->key,
                   "key path, such as params.layers.0.kernel; may begin with its prefix")
      ->required();
  verb->add_option("--slice", args->slice, "a part of the array, such as 0:4,:,-1");
  CLI::Option* raw =
      verb->add_flag("--raw", args->raw, "write the exact bytes: C order, little endian");
  verb->add_flag("--npy", args->npy, "write a NumPy .npy file")->excludes(raw);
  verb->add_flag("--all", args->all, "print all elements; by default long output is cut");
  add_prefix(verb, args->prefix);
  on_chosen(verb, action, args, cat_command);
}

void add_stats(CLI::App& app, Common& common, Action& action) {
  auto args = std::make_shared<StatsArgs>();
  CLI::App* verb = add_verb(
      app, "stats",
      "show minimum, maximum, mean, deviation, NaN, infinities and zeros of each leaf", common);
  verb->add_option("CKPT", args->path, kCheckpointHelp)->required();
  verb->add_option("KEY", args->key, "only this leaf or subtree");
  add_prefix(verb, args->prefix);
  on_chosen(verb, action, args, stats_command);
}

void add_plan(CLI::App& app, Common& common, Action& action) {
  auto args = std::make_shared<PlanArgs>();
  CLI::App* verb =
      add_verb(app, "plan",
               "show what each rank would read in a load onto a mesh; reads metadata only", common);
  verb->add_option("CKPT", args->path, kCheckpointHelp)->required();
  verb->add_option("--mesh", args->mesh, "axes and sizes, such as fsdp=4,tp=2")->required();
  verb->add_option("--rules", args->rules,
                   "file of partition rules: [[\"regex\", [\"fsdp\", null, [\"dp\", \"tp\"]]], "
                   "...]; by default arrays are placed as saved");
  verb->add_option("--ranks", args->ranks, "number of processes; by default one for each device")
      ->check(at_least_one());
  verb->add_option("--leaf", args->leaf, "array to draw; by default the largest that is split");
  verb->add_option("--svg", args->svg, "write the drawing to this SVG file");
  verb->add_flag("--check,!--no-check", args->check,
                 "read whole checksum blocks, as loads do; on by default");
  add_prefix(verb, args->prefix);
  on_chosen(verb, action, args, plan_command);
}

void add_verify(CLI::App& app, Common& common, Action& action) {
  auto args = std::make_shared<VerifyArgs>();
  CLI::App* verb = add_verb(app, "verify",
                            "read every byte and list all damage; exit 1 if there is any", common);
  verb->add_option("CKPT", args->path, kCheckpointHelp)->required();
  add_prefix(verb, args->prefix);
  on_chosen(verb, action, args, verify_command);
}

void add_diff(CLI::App& app, Common& common, Action& action) {
  auto args = std::make_shared<DiffArgs>();
  CLI::App* verb = add_verb(
      app, "diff", "compare two checkpoints of any layouts; exit 1 if they differ", common);
  verb->add_option("FIRST", args->first, kCheckpointHelp)->required();
  verb->add_option("SECOND", args->second, "the checkpoint to compare with")->required();
  add_prefix(verb, args->prefix);
  on_chosen(verb, action, args, diff_command);
}

void add_convert(CLI::App& app, Common& common, Action& action) {
  auto args = std::make_shared<ConvertArgs>();
  CLI::App* verb =
      add_verb(app, "convert", "convert trees to another layout, type or split; streams", common);
  verb->add_option("FROM", args->from, kCheckpointHelp)->required();
  verb->add_option("TO", args->to, "a directory, or one file that ends in .safetensors")
      ->required();
  verb->add_option("--to-layout", args->layout, "zarr2 or safetensors; by default the other one")
      ->check(CLI::IsMember({"zarr2", "safetensors"}));
  verb->add_option("--dtype", args->dtype,
                   "cast floats to this type, such as bfloat16; rounds to nearest even");
  verb->add_option("--codec", args->codec, "zarr2: raw, zstd[:level], gzip, zlib, bz2 or blosc");
  verb->add_option("--shard-size", args->shard_size,
                   "safetensors: maximum size of a part, such as 5GiB");
  verb->add_option("--chunk-size", args->chunk_size,
                   "zarr2: maximum size of a chunk, such as 64MiB");
  verb->add_flag("--sha256", args->sha256, "also store a SHA-256 of each array");
  verb->add_flag("--overwrite", args->overwrite,
                 "replace a tree with other leaves, another file, or FROM itself, at TO");
  add_prefix(verb, args->prefix);
  on_chosen(verb, action, args, convert_command);
}

void add_gc(CLI::App& app, Common& common, Action& action) {
  auto args = std::make_shared<GcArgs>();
  CLI::App* verb = add_verb(
      app, "gc", "remove checkpoints of a run that no rule keeps, and leftovers of dead jobs",
      common);
  verb->add_option("RUN", args->path, "a run directory")->required();
  verb->add_option("--keep-last", args->keep_last, "keep this many of the newest");
  verb->add_option("--keep-every", args->keep_every, "keep steps divisible by this number");
  verb->add_option("--best-k", args->best_k, "keep this many of the best by --metric");
  verb->add_option("--metric", args->metric, "name of a number under \"metrics\" in metadata.json");
  verb->add_option("--mode", args->mode, "which values of the metric are better: min or max")
      ->check(CLI::IsMember({"min", "max"}))
      ->capture_default_str();
  verb->add_option("--max-bytes", args->max_bytes,
                   "remove more until the total size is at most this, such as 500GiB");
  verb->add_option("--min-free", args->min_free,
                   "remove more until this much disk space is free, such as 50GiB");
  verb->add_flag("--dry-run", args->dry_run, "only show what would be kept and removed, and why");
  on_chosen(verb, action, args, gc_command);
}

constexpr const char* kOneCheckpointHelp = "one checkpoint directory";

void add_promote(CLI::App& app, Common& common, Action& action) {
  auto args = std::make_shared<PromoteArgs>();
  CLI::App* verb = add_verb(app, "promote", "make a temporary checkpoint permanent", common);
  verb->add_option("CKPT", args->path, kOneCheckpointHelp)->required();
  on_chosen(verb, action, args, promote_command);
}

void add_pin(CLI::App& app, Common& common, Action& action) {
  auto args = std::make_shared<PinArgs>();
  CLI::App* verb = add_verb(app, "pin", "protect a checkpoint from removal", common);
  verb->add_option("CKPT", args->path, kOneCheckpointHelp)->required();
  verb->add_option("--reason", args->reason, "the reason, shown to anybody who tries to remove it");
  on_chosen(verb, action, args, pin_command);
}

void add_unpin(CLI::App& app, Common& common, Action& action) {
  auto args = std::make_shared<UnpinArgs>();
  CLI::App* verb = add_verb(app, "unpin", "end the protection of a pinned checkpoint", common);
  verb->add_option("CKPT", args->path, kOneCheckpointHelp)->required();
  on_chosen(verb, action, args, unpin_command);
}

void add_watch(CLI::App& app, Common& common, Action& action) {
  auto args = std::make_shared<WatchArgs>();
  CLI::App* verb =
      add_verb(app, "watch",
               "show saves in flight, rank by rank, the latest checkpoint and disk use", common);
  verb->add_option("RUN", args->path, "a run directory")->required();
  verb->add_option("--interval", args->interval, "seconds between updates")
      ->check(number_between(0.01, 86'400))
      ->capture_default_str();
  verb->add_flag("--once", args->once, "print once and exit");
  on_chosen(verb, action, args, watch_command);
}

void add_request_save(CLI::App& app, Common& common, Action& action) {
  auto args = std::make_shared<RequestSaveArgs>();
  CLI::App* verb =
      add_verb(app, "request-save", "ask the job of a run to save at its next step", common);
  verb->add_option("RUN", args->path, "a run directory")->required();
  verb->add_option("--reason", args->reason, "the reason, for the log of the job");
  CLI::Option* wait = verb->add_flag(
      "--wait", args->wait, "wait until a newer checkpoint is committed, and print its name");
  verb->add_option("--timeout", args->timeout, "maximum wait in seconds")
      ->check(number_between(0, 1e9))
      ->needs(wait)
      ->capture_default_str();
  on_chosen(verb, action, args, request_save_command);
}

void add_doctor(CLI::App& app, Common& common, Action& action) {
  auto args = std::make_shared<DoctorArgs>();
  CLI::App* verb = add_verb(
      app, "doctor", "test what the file system of a directory offers for checkpoints", common);
  verb->add_option("PATH", args->path, "a writable directory")->capture_default_str();
  on_chosen(verb, action, args, doctor_command);
}

void add_completion(CLI::App& app, Action& action) {
  auto args = std::make_shared<CompletionArgs>();
  CLI::App* verb = app.add_subcommand("completion",
                                      "print a shell script that completes verbs, options and keys")
                       ->group("Verbs");
  verb->add_option("SHELL", args->shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  verb->callback([&action, args] {
    action = [args](const Terminal& terminal, Runtime&) {
      return completion_command(*args, terminal);
    };
  });
}

/// A wrong command line, or --help.
int answer(const CLI::App& app, const CLI::ParseError& error) {
  const Terminal terminal(false);
  std::ostringstream help;
  std::stringstream complaint;
  const bool good = app.exit(error, help, complaint) == 0;
  terminal.raw(help.str());
  for (std::string line; std::getline(complaint, line);) terminal.note(line);
  return good ? kGood : kUsage;
}

int run(int argc, char** argv) {
  CLI::App app(
      "Cairn saves and restores the state of training jobs. These verbs inspect, check and manage\n"
      "checkpoints; none of them needs Python or an accelerator.",
      "cairn");
  app.require_subcommand(1);
  app.get_formatter()->label("SUBCOMMAND", "VERB");
  app.set_version_flag(
      "--version", fmt::format("cairn {} ({})\nformats: zarr2, safetensors; stores: file, memory",
                               kVersion, kCommit));
  app.footer(
      "Exit status: 0 success, 1 damage or a difference was found, 2 wrong usage, 3 failed.\n"
      "Examples:\n"
      "  cairn show ckpt/run-1000 --depth 2\n"
      "  cairn cat ckpt/run-1000 params.embed.kernel --slice 0:4,:8\n"
      "  cairn convert ckpt/run-1000 model.safetensors --dtype bfloat16");
  Common common;
  Action action;
  for (const auto add :
       {add_ls, add_show, add_cat, add_stats, add_plan, add_verify, add_diff, add_convert, add_gc,
        add_promote, add_pin, add_unpin, add_watch, add_request_save, add_doctor}) {
    add(app, common, action);
  }
  add_completion(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (argc > 1 && argv[1][0] != '-' && app.get_subcommands().empty()) {
      Terminal(false).note(
          fmt::format("cairn: there is no verb '{}'; `cairn --help` lists all verbs", argv[1]));
      return kUsage;
    }
    return answer(app, error);
  }
  const Terminal terminal(common.json);
  Runtime runtime({.threads = common.threads,
                   .log = [&](const LogEntry& entry) { terminal.note("note: " + entry.message); }});
  int code = kFailed;
  const auto done = without_exceptions([&]() -> Result<void> {
    code = action(terminal, runtime);
    return {};
  });
  if (!done) code = terminal.fail(done.error());
  // A full disk or a closed pipe behind standard output shows here at the latest.
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  std::fputs("cairn: standard output could not be written [cli/output]\n", stderr);
  return kFailed;
}

}  // namespace
}  // namespace cairn::cli

int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape): ends the program
  // `cairn show ... | head` ends quietly.
  ::signal(SIGPIPE, SIG_DFL);
  return cairn::cli::run(argc, argv);
}
