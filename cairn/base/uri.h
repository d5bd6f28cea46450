// SPDX-License-Identifier: Apache-2.0
// Where a checkpoint lies: a path, or a URL of one of the schemes that `storage` opens.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "cairn/base/result.h"

namespace cairn {

/// A path on this machine. Code that works on directories takes this type, so that
/// "gs://bucket/a" is never taken for the local directory "a".
class LocalPath {
 public:
  LocalPath() = default;  ///< empty: no path

  /// A plain path or a file:// URL. Errors of parse_uri(); `unimplemented` (uri/not-local) for a
  /// URL of another scheme.
  static Result<LocalPath> parse(std::string_view text);

  const std::string& text() const { return text_; }
  operator const std::string&() const { return text_; }  // NOLINT: every local path is a text
  /// `name` in this directory.
  LocalPath below(std::string_view name) const;
  /// "." for a plain name, "/" for "/".
  LocalPath parent() const;
  /// The last component.
  std::string name() const;
  bool operator==(const LocalPath&) const = default;

 private:
  friend struct Uri;
  explicit LocalPath(std::string text);  ///< slashes at its end are dropped
  std::string text_;
};

/// "gs://bucket/a/b" is {gs, bucket, a/b}; a plain path and "file:///a" are {file, "", /a}.
struct Uri {
  std::string scheme;     ///< lower case; "file" for a plain path
  std::string authority;  ///< bucket or host; empty for file, may be for memory
  std::string path;       ///< file: the path; others: the key, without a leading slash

  /// A plain path for file, otherwise the URL.
  std::string to_string() const;
  /// `unimplemented` (uri/not-local) unless the scheme is file.
  Result<LocalPath> local() const;
  bool operator==(const Uri&) const = default;
};

/// `invalid_argument`: uri/empty, uri/bad-scheme, uri/bad-host (a file URL with a host),
/// uri/no-bucket, uri/nul, uri/lost-slash ("gs:/bucket", a URL that was taken for a path on the way
/// here). Does not look at the disk, decodes no percent escapes, and refuses no scheme.
Result<Uri> parse_uri(std::string_view text);

/// Where the last component lies, and its name: "/a/b" is {"/a", "b"}, "b" is {".", "b"},
/// "gs://bucket/b" is {"gs://bucket", "b"}.
std::pair<Uri, std::string> split_uri(Uri uri);

/// "directory/name"; if one of them is empty, the other.
std::string join_path(std::string_view directory, std::string_view name);

/// Does this name stay below the directory it is joined to? False for "", absolute paths, "..",
/// ".", empty components, NUL and a trailing slash.
bool is_safe_relative_path(std::string_view path);

}  // namespace cairn
