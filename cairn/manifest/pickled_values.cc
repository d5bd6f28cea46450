// SPDX-License-Identifier: Apache-2.0
#include "cairn/manifest/pickled_values.h"

#include <cmath>
#include <utility>

#include "cairn/base/base64.h"
#include "cairn/tree/flatten.h"

namespace cairn {

namespace {

constexpr std::size_t kMostStaticsBytes = kMiB;

Error only_execution() {
  return Error(Code::kUnimplemented, "pickle/unsupported",
               "it can only be made by executing the pickle");
}

/// complex(1.0, 2.0) is the one call that is understood.
Result<Value> value_of_call(const Pickle& pickle, const Pickle::Call& call) {
  const auto* name = std::get_if<Pickle::Name>(&pickle.at(call.what));
  const auto* arguments = std::get_if<Pickle::Tuple>(&pickle.at(call.arguments));
  if (name == nullptr || name->text != "builtins:complex" || arguments == nullptr ||
      arguments->items.size() != 2)
    return only_execution();
  const auto* real = std::get_if<double>(&pickle.at(arguments->items[0]));
  const auto* imaginary = std::get_if<double>(&pickle.at(arguments->items[1]));
  if (real == nullptr || imaginary == nullptr) return only_execution();
  return Value(std::complex<double>(*real, *imaginary));
}

}  // namespace

std::optional<std::int64_t> pickled_int64(const Pickle::Item& item) {
  const auto* integer = std::get_if<Pickle::Integer>(&item);
  if (integer == nullptr) return std::nullopt;
  const auto parsed = Integer::parse(integer->digits);
  return parsed ? parsed->to_int64() : std::nullopt;
}

Result<Value> value_of_pickle(const Pickle& pickle) {
  const Pickle::Item& item = pickle.root();
  if (std::holds_alternative<Pickle::None>(item)) return Value();
  if (const auto* boolean = std::get_if<bool>(&item)) return Value(*boolean);
  if (const auto* number = std::get_if<double>(&item)) return Value(*number);
  if (const auto* text = std::get_if<std::string>(&item)) return Value(*text);
  if (const auto* bytes = std::get_if<Pickle::Bytes>(&item)) return Value(Bytes{bytes->data});
  if (const auto* integer = std::get_if<Pickle::Integer>(&item)) {
    CAIRN_TRY_ASSIGN(auto parsed, Integer::parse(integer->digits));
    return Value(std::move(parsed));
  }
  const auto* call = std::get_if<Pickle::Call>(&item);
  if (call == nullptr) return only_execution();
  return value_of_call(pickle, *call);
}

std::optional<std::string> PickledStatics::text(Pickle::Number number) {
  room_ = kMostStaticsBytes;
  auto json = dump(number, 0);
  if (!json) return std::nullopt;
  std::string text = dump_json(*json);
  return text.size() > kMostStaticsBytes ? std::nullopt : std::optional(std::move(text));
}

namespace {

std::optional<Json> wrapped(const char* kind, std::optional<Json> inside) {
  if (!inside) return std::nullopt;
  return Json::Object{{kind, *std::move(inside)}};
}

Json dump_real(double value) {
  if (std::isfinite(value)) return value;
  return Json::Object{{"float", std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf"}};
}

}  // namespace

std::optional<Json> PickledStatics::dump(Pickle::Number number, int depth) {
  if (++seen_ > kMostItems || depth > kMaxTreeDepth) return std::nullopt;
  const Pickle::Item& item = pickle_.at(number);
  if (std::holds_alternative<Pickle::None>(item)) return Json();
  if (const auto* boolean = std::get_if<bool>(&item)) return Json(*boolean);
  if (const auto* text = std::get_if<std::string>(&item))
    return has_room(text->size()) ? std::optional(Json(*text)) : std::nullopt;
  if (const auto* real = std::get_if<double>(&item)) return dump_real(*real);
  if (const auto integer = pickled_int64(item)) return Json(*integer);
  if (const auto* bytes = std::get_if<Pickle::Bytes>(&item)) {
    if (!has_room(bytes->data.size())) return std::nullopt;
    return Json::Object{{"bytes", encode_base64(as_bytes(bytes->data))}};
  }
  if (const auto* name = std::get_if<Pickle::Name>(&item)) {
    if (!has_room(name->text.size())) return std::nullopt;
    return Json::Object{{"class", name->text}};
  }
  if (const auto* list = std::get_if<Pickle::List>(&item)) return dump_items(list->items, depth);
  if (const auto* tuple = std::get_if<Pickle::Tuple>(&item))
    return wrapped("tuple", dump_items(tuple->items, depth));
  if (const auto* dict = std::get_if<Pickle::Dict>(&item)) return dump_dict(dict->items, depth);
  return std::nullopt;
}

bool PickledStatics::has_room(std::size_t bytes) {
  if (bytes > room_) return false;
  room_ -= bytes;
  return true;
}

std::optional<Json> PickledStatics::dump_items(const Pickle::Numbers& items, int depth) {
  Json::Array made;
  for (const Pickle::Number item : items) {
    auto one = dump(item, depth + 1);
    if (!one) return std::nullopt;
    made.push_back(*std::move(one));
  }
  return Json(std::move(made));
}

std::optional<Json> PickledStatics::dump_dict(const Pickle::Numbers& items, int depth) {
  Json::Array pairs;
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    auto key = dump(items[i], depth + 1);
    auto value = dump(items[i + 1], depth + 1);
    if (!key || !value) return std::nullopt;
    pairs.emplace_back(Json::Array{*std::move(key), *std::move(value)});
  }
  return Json::Object{{"dict", std::move(pairs)}};
}

}  // namespace cairn
