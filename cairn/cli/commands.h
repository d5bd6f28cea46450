// SPDX-License-Identifier: Apache-2.0
// The verbs: their arguments, and the functions that run them. One file for each verb.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cairn/runtime/runtime.h"

namespace cairn::cli {

class Terminal;

struct LsArgs {
  std::string path = ".";
};
struct ShowArgs {
  std::string path;
  std::optional<std::string> prefix = {};
  std::optional<int> depth = {};
};
struct CatArgs {
  std::string path;
  std::string key;
  std::optional<std::string> prefix = {};
  std::string slice = {};
  bool raw = false;
  bool npy = false;
  bool all = false;
};
struct StatsArgs {
  std::string path;
  std::optional<std::string> prefix = {};
  std::string key = {};
};
struct PlanArgs {
  std::string path;
  std::string mesh;
  std::string rules = {};
  std::optional<int> ranks = {};
  std::string leaf = {};
  std::string svg = {};
  std::optional<std::string> prefix = {};
  bool check = true;
};
struct VerifyArgs {
  std::string path;
  std::optional<std::string> prefix = {};
};
struct DiffArgs {
  std::string first;
  std::string second;
  std::optional<std::string> prefix = {};
};
struct ConvertArgs {
  std::string from;
  std::string to;
  std::string layout = {};
  std::string dtype = {};
  std::string codec = {};
  std::string shard_size = {};
  std::string chunk_size = {};
  std::optional<std::string> prefix = {};
  bool sha256 = false;
  bool overwrite = false;
};
struct GcArgs {
  std::string path;
  std::optional<std::int64_t> keep_last = {};
  std::optional<std::int64_t> keep_every = {};
  std::optional<std::int64_t> best_k = {};
  std::string metric = {};
  std::string mode = "min";
  std::string max_bytes = {};
  std::string min_free = {};
  bool dry_run = false;
};
struct PromoteArgs {
  std::string path;
};
struct PinArgs {
  std::string path;
  std::string reason = {};
};
struct UnpinArgs {
  std::string path;
};
struct WatchArgs {
  std::string path;
  double interval = 1;
  bool once = false;
};
struct RequestSaveArgs {
  std::string path;
  std::string reason = {};
  bool wait = false;
  double timeout = 600;
};
struct DoctorArgs {
  std::string path = ".";
};
struct CompletionArgs {
  std::string shell;
};

int ls_command(const LsArgs& args, const Terminal& terminal, Runtime& runtime);
int show_command(const ShowArgs& args, const Terminal& terminal, Runtime& runtime);
int cat_command(const CatArgs& args, const Terminal& terminal, Runtime& runtime);
int stats_command(const StatsArgs& args, const Terminal& terminal, Runtime& runtime);
int plan_command(const PlanArgs& args, const Terminal& terminal, Runtime& runtime);
int verify_command(const VerifyArgs& args, const Terminal& terminal, Runtime& runtime);
int diff_command(const DiffArgs& args, const Terminal& terminal, Runtime& runtime);
int convert_command(const ConvertArgs& args, const Terminal& terminal, Runtime& runtime);
int gc_command(const GcArgs& args, const Terminal& terminal, Runtime& runtime);
int promote_command(const PromoteArgs& args, const Terminal& terminal, Runtime& runtime);
int pin_command(const PinArgs& args, const Terminal& terminal, Runtime& runtime);
int unpin_command(const UnpinArgs& args, const Terminal& terminal, Runtime& runtime);
int watch_command(const WatchArgs& args, const Terminal& terminal, Runtime& runtime);
int request_save_command(const RequestSaveArgs& args, const Terminal& terminal, Runtime& runtime);
int doctor_command(const DoctorArgs& args, const Terminal& terminal, Runtime& runtime);
int completion_command(const CompletionArgs& args, const Terminal& terminal);

}  // namespace cairn::cli
