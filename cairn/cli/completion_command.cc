// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include <fmt/format.h>

#include "cairn/cli/commands.h"
#include "cairn/cli/exit_codes.h"
#include "cairn/cli/terminal.h"

namespace cairn::cli {

namespace {

// clang-format off
constexpr std::string_view kBash = R"SH(# bash completion for cairn: source <(cairn completion bash)
_cairn() {
  local cur=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} words word
  COMPREPLY=()
  if [[ $COMP_CWORD -eq 1 ]]; then
    words=$(printf '%s\n' ls show cat stats plan verify diff convert gc \
      promote pin unpin watch request-save doctor completion --help --version)
  elif [[ $cur == -* ]]; then
    words=$(cairn "$verb" --help 2>/dev/null | grep -o -- '--[a-z0-9-]*' | sort -u)
  elif [[ $COMP_CWORD -eq 3 && ( $verb == cat || $verb == stats ) ]]; then
    # Names come from the checkpoint: they are compared and quoted, and never expanded.
    words=$(cairn show --json "${COMP_WORDS[2]}" 2>/dev/null |
      sed -n '/\\/d; s/^ *"key": "\(.*\)",*$/\1/p')
  elif [[ $verb == completion ]]; then
    words=$'bash\nzsh\nfish'
  else
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    return
  fi
  while IFS= read -r word; do
    if [[ -n $word && $word == "$cur"* ]]; then COMPREPLY+=("$(printf '%q' "$word")"); fi
  done <<<"$words"
}
complete -F _cairn cairn
)SH";
// clang-format on

constexpr std::string_view kZsh = R"SH(#compdef cairn
# zsh completion for cairn: cairn completion zsh > "${fpath[1]}/_cairn"
local -a verbs
verbs=(
  'ls:list the checkpoints of a run'
  'show:the tree of a checkpoint'
  'cat:values of a leaf or a slice'
  'stats:minimum, maximum, mean, NaN of each leaf'
  'plan:how a load onto a mesh would go'
  'verify:read everything and find damage'
  'diff:compare two checkpoints'
  'convert:another layout, type or split'
  'gc:remove what no rule keeps'
  'promote:temporary to permanent'
  'pin:let nobody remove a checkpoint'
  'unpin:let it go again'
  'watch:what saves in flight are doing'
  'request-save:ask a job to save'
  'doctor:what this file system can do'
  'completion:shell completion'
)
if (( CURRENT == 2 )); then
  _describe 'verb' verbs
else
  _files
fi
)SH";

constexpr std::string_view kFish = R"SH(# fish completion for cairn: cairn completion fish | source
set -l verbs ls show cat stats plan verify diff convert gc promote pin unpin
set -a verbs watch request-save doctor completion
complete -c cairn -n "not __fish_seen_subcommand_from $verbs" -f -a "$verbs"
complete -c cairn -l json -d 'one JSON document on standard output'
complete -c cairn -l help -d 'help'
)SH";

}  // namespace

int completion_command(const CompletionArgs& args, const Terminal& terminal) {
  if (args.shell == "bash") terminal.raw(kBash);
  if (args.shell == "zsh") terminal.raw(kZsh);
  if (args.shell == "fish") terminal.raw(kFish);
  return kGood;
}

}  // namespace cairn::cli
