// SPDX-License-Identifier: Apache-2.0
#include "cairn/base/uri.h"

#include <algorithm>

namespace cairn {
namespace {

constexpr std::string_view kFile = "file";

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_scheme_char(char c) {
  return is_letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
}
char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

Error invalid(const char* reason, std::string message) {
  return {Code::kInvalidArgument, reason, std::move(message)};
}

// What stands before "://", or nothing for a plain path.
std::string_view scheme_part(std::string_view text) {
  const std::size_t end = text.find("://");
  if (end == std::string_view::npos || text.substr(0, end).find('/') != std::string_view::npos) {
    return {};
  }
  return text.substr(0, end);
}

bool is_url(std::string_view text) { return text.starts_with("://") || !scheme_part(text).empty(); }

Result<Uri> parse_file_url(std::string_view text, std::string_view rest) {
  if (rest.starts_with("localhost/")) rest.remove_prefix(std::string_view("localhost").size());
  if (rest.empty()) return invalid("uri/empty", "'" + std::string(text) + "' has no path");
  if (rest.front() != '/') {
    return invalid("uri/bad-host",
                   "'" + std::string(text) + "' names a host; write file:///path or a plain path");
  }
  return Uri{std::string(kFile), "", std::string(rest)};
}

}  // namespace

std::string Uri::to_string() const {
  if (scheme == kFile) return path;
  std::string text = scheme + "://" + authority;
  if (!path.empty()) text += "/" + path;
  return text;
}

Result<LocalPath> Uri::local() const {
  if (scheme == kFile) return LocalPath(path);
  return Error(Code::kUnimplemented, "uri/not-local",
               "'" + to_string() + "' is not a local path; use a path on a mounted file system");
}

Result<LocalPath> LocalPath::parse(std::string_view text) {
  CAIRN_TRY_ASSIGN(const Uri uri, parse_uri(text));
  return uri.local();
}

LocalPath::LocalPath(std::string text) : text_(std::move(text)) {
  while (text_.size() > 1 && text_.back() == '/') text_.pop_back();
}

LocalPath LocalPath::parent() const {
  const std::size_t slash = text_.rfind('/');
  if (slash == std::string::npos) return LocalPath(".");
  return LocalPath(text_.substr(0, std::max<std::size_t>(slash, 1)));
}

std::string LocalPath::name() const { return text_.substr(text_.rfind('/') + 1); }

LocalPath LocalPath::below(std::string_view name) const {
  return LocalPath((text_ == "/" ? "" : text_) + "/" + std::string(name));
}

namespace {

/// "gs:/bucket" is a URL that went through code for paths, which makes one slash of two.
Result<void> check_no_lost_slash(std::string_view text) {
  for (const std::string_view scheme :
       {"gs", "s3", "gcs", "memory", "http", "https", "az", "abfs", "hdfs"}) {
    if (!text.starts_with(scheme) || !text.substr(scheme.size()).starts_with(":/")) continue;
    return invalid("uri/lost-slash", "'" + std::string(text) +
                                         "' looks like a URL that lost a slash; "
                                         "pass URLs as text, " +
                                         std::string(scheme) + "://...; as a path, write ./" +
                                         std::string(text));
  }
  return {};
}

}  // namespace

Result<Uri> parse_uri(std::string_view text) {
  if (text.empty()) return invalid("uri/empty", "the path is empty; name a directory or a URL");
  if (text.find('\0') != std::string_view::npos) {
    return invalid("uri/nul", "a path cannot contain a NUL byte");
  }
  if (!is_url(text)) {
    CAIRN_TRY(check_no_lost_slash(text));
    return Uri{std::string(kFile), "", std::string(text)};
  }

  std::string scheme(scheme_part(text));
  if (scheme.empty() || !is_letter(scheme[0]) || !std::ranges::all_of(scheme, is_scheme_char)) {
    return invalid("uri/bad-scheme",
                   "'" + scheme + "' in '" + std::string(text) + "' is not a URL scheme");
  }
  std::ranges::transform(scheme, scheme.begin(), to_lower);
  std::string_view rest = text.substr(scheme.size() + 3);
  if (scheme == kFile) return parse_file_url(text, rest);

  const std::string_view authority = rest.substr(0, rest.find('/'));
  // Memory lives in the process: it needs no name of a place.
  if (authority.empty() && scheme != "memory") {
    return invalid("uri/no-bucket",
                   "'" + std::string(text) + "' has no bucket; write " + scheme + "://bucket/path");
  }
  rest.remove_prefix(authority.size());
  rest.remove_prefix(std::min(rest.find_first_not_of('/'), rest.size()));
  return Uri{std::move(scheme), std::string(authority), std::string(rest)};
}

std::pair<Uri, std::string> split_uri(Uri uri) {
  const std::size_t slash = uri.path.rfind('/');
  const bool alone = slash == std::string::npos;
  std::string name = uri.path.substr(alone ? 0 : slash + 1);
  const std::string_view here = uri.scheme == kFile ? "." : "";
  uri.path = alone ? here : uri.path.substr(0, std::max<std::size_t>(slash, 1));
  return {std::move(uri), std::move(name)};
}

std::string join_path(std::string_view directory, std::string_view name) {
  std::string path(directory);
  if (!directory.empty() && !name.empty()) path += '/';
  return path += name;
}

bool is_safe_relative_path(std::string_view path) {
  if (path.find('\0') != std::string_view::npos) return false;
  while (true) {
    const std::size_t slash = path.find('/');
    const std::string_view component = path.substr(0, slash);
    if (component.empty() || component == "." || component == "..") return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

}  // namespace cairn
