// SPDX-License-Identifier: Apache-2.0
#include "cairn/coord/rendezvous.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <random>
#include <string>

#include <fmt/format.h>

#include "cairn/coord/meeting.h"
#include "cairn/coord/refusals.h"
#include "cairn/coord/wire.h"

namespace cairn::coord {
namespace {

constexpr const char* kVerdict = "verdict";
constexpr std::size_t kWordLength = 16;

// A look at a message that is not the awaited one reads no more than this, if its first line fits.
constexpr std::size_t kFirstRead = 4096;

// Ranks may still read the first verdict when the second call has failed.
constexpr std::uint64_t kCallsThatAdmit = 2;

bool is_word(std::string_view text) {
  return text.size() == kWordLength &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// The session of a key such as "rank-3-0123456789abcdef"; empty if it is none of ours.
std::string_view session_of(std::string_view key) {
  if (!key.starts_with("rank-") && !key.starts_with("alarm-")) return {};
  const std::string_view word = key.substr(key.rfind('-') + 1);
  return is_word(word) ? word : std::string_view();
}

Result<std::string> draw_word() {
  try {
    std::random_device random;
    return fmt::format("{:08x}{:08x}", random(), random());
  } catch (const std::exception& error) {
    return Error(Code::kUnavailable, "coord/no-random",
                 fmt::format("the system provides no random numbers: {}", error.what()));
  }
}

std::string_view text_in(const Json& json, const char* name) {
  const Json* member = json.find(name);
  return member != nullptr && member->text() != nullptr ? *member->text() : std::string_view();
}

// A message whose payload is still in the store.
struct Found {
  Header header;
  std::unique_ptr<storage::ObjectReader> reader;

  std::uint64_t call() const { return header.message.call; }
  std::string_view session() const { return text_in(header.json, "session"); }
  std::string_view word() const { return text_in(header.json, "word"); }
};

Result<std::string> read_text(storage::ObjectReader& reader, std::uint64_t size) {
  std::string text(static_cast<std::size_t>(size), '\0');
  CAIRN_TRY(reader.read_at(0, std::as_writable_bytes(std::span(text))));
  return text;
}

class RendezvousChannel final : public Channel {
 public:
  RendezvousChannel(std::shared_ptr<storage::Store> store, Place place, Clock& clock,
                    std::string word)
      : store_(std::move(store)),
        place_(place),
        clock_(clock),
        word_(std::move(word)),
        words_(static_cast<std::size_t>(place.rank == 0 ? place.count : 0)) {
    if (place.rank == 0) session_ = word_;
  }
  ~RendezvousChannel() override;

  Place place() const override { return place_; }
  Clock& clock() override { return clock_; }
  void wait(std::chrono::nanoseconds span) override { clock_.pause(span); }

  /// Rank 0, before anything else.
  Result<void> take_over();
  /// The others, before anything else: what is there now may be an earlier job's.
  Result<void> look_around();
  Result<void> send(const Message& message) override;
  Result<std::vector<Received>> receive(std::uint64_t call, std::span<const int> from) override;

 private:
  Result<void> stay_in_charge();
  Result<void> answer();
  Result<std::optional<Received>> hear_rank(std::uint64_t call, int rank);
  Result<std::optional<Received>> hear_alarm(std::uint64_t call);
  Result<std::optional<Received>> hear_verdict(std::uint64_t call);
  Result<void> follow(const Found& found);
  Result<void> check_admission(const Found& found);

  Result<void> put(const std::string& key, const Message& message);
  Result<std::optional<Found>> find(const std::string& key);
  Result<Received> take(int from, Found found);
  std::string key_of(int rank) const { return fmt::format("rank-{}-{}", rank, session_); }
  std::string alarm_key() const { return "alarm-" + session_; }
  Error taken_over() const;
  void leave();

  const std::shared_ptr<storage::Store> store_;
  const Place place_;
  Clock& clock_;
  const std::string word_;
  std::string session_;
  std::vector<std::string> words_;  ///< rank 0: of the other ranks; empty: not heard of yet
  std::string old_session_;         ///< what this rank found when it came ...
  std::uint64_t old_call_ = 0;      ///< ... and where it stood
  std::string replaced_;            ///< other ranks: what rank 0 found when it came
  Message last_;                    ///< rank 0: the verdict; others: to answer a session with
  bool unanswered_ = false;         ///< the session has not got it yet
  bool admitted_ = false;           ///< a call has ended well
  bool broken_ = false;             ///< one has not: others still need the files
};

RendezvousChannel::~RendezvousChannel() {
  if (admitted_ && !broken_) leave();
}

Result<void> RendezvousChannel::take_over() {
  CAIRN_TRY(look_around());
  CAIRN_TRY(put(kVerdict, Message{}));
  CAIRN_TRY_ASSIGN(const auto entries, store_->list("", /*recursive=*/false));
  for (const storage::ListEntry& entry : entries) {
    const std::string_view session = session_of(entry.key);
    if (entry.directory || session.empty() || session == session_) continue;
    store_->remove(entry.key).ignore_error("the next job tries again");
  }
  return {};
}

// What stays behind is removed by the next job, so a failure here does not matter.
void RendezvousChannel::leave() {
  if (place_.rank != 0) store_->remove(key_of(place_.rank)).ignore_error("it stays behind");
  const auto entries = store_->list("", /*recursive=*/false);
  if (!entries) return;
  for (const storage::ListEntry& entry : *entries) {
    if (entry.key.starts_with("rank-") && session_of(entry.key) == session_) return;
  }
  store_->remove(alarm_key()).ignore_error("nobody gave up");
  const auto verdict = find(kVerdict);
  if (!verdict || !*verdict || (*verdict)->session() != session_) return;
  store_->remove(kVerdict).ignore_error("somebody else left at the same time");
}

Error RendezvousChannel::taken_over() const {
  return Error(Code::kFailedPrecondition, "coord/taken-over",
               "another job was started in this directory; give each a directory of its own")
      .in(store_->describe(""));
}

Result<void> RendezvousChannel::send(const Message& message) {
  if (message.outcome != CallStatus::kDone) broken_ = true;
  if (place_.rank != 0) {
    last_ = message;
    unanswered_ = true;
    return session_.empty() ? Result<void>() : answer();
  }
  CAIRN_TRY(stay_in_charge());
  last_ = message;
  CAIRN_TRY(put(kVerdict, last_));
  admitted_ = true;
  return {};
}

// A job that was taken over may have looked just before that, and put its verdict after it.
Result<void> RendezvousChannel::stay_in_charge() {
  CAIRN_TRY_ASSIGN(const auto found, find(kVerdict));
  if (!found || found->session() == session_) return {};
  return found->session() == old_session_ ? put(kVerdict, last_) : taken_over();
}

Result<void> RendezvousChannel::answer() {
  CAIRN_TRY(put(key_of(place_.rank), last_));
  if (last_.outcome != CallStatus::kDone) CAIRN_TRY(put(alarm_key(), Message{.call = last_.call}));
  unanswered_ = false;
  return {};
}

Result<std::vector<Received>> RendezvousChannel::receive(std::uint64_t call,
                                                         std::span<const int> from) {
  std::vector<Result<std::optional<Received>>> heard;
  if (place_.rank != 0) {
    heard.push_back(hear_verdict(call));
  } else {
    if (call <= kCallsThatAdmit && !old_session_.empty()) CAIRN_TRY(stay_in_charge());
    for (const int rank : from) heard.push_back(hear_rank(call, rank));
    heard.push_back(hear_alarm(call));
  }
  std::vector<Received> received;
  std::optional<Error> trouble;
  for (auto& item : heard) {
    if (!item && item.error().code() != Code::kUnavailable) return std::move(item).error();
    if (!item) trouble = item.error();
    if (item && *item) received.push_back(**std::move(item));
  }
  if (received.empty() && trouble) return *trouble;
  for (const Received& item : received) broken_ |= item.message.outcome != CallStatus::kDone;
  return received;
}

Result<std::optional<Received>> RendezvousChannel::hear_rank(std::uint64_t call, int rank) {
  CAIRN_TRY_ASSIGN(auto found, find(key_of(rank)));
  if (!found) return std::optional<Received>();
  std::string& word = words_[static_cast<std::size_t>(rank)];
  if (!word.empty() && word != found->word()) {
    return std::optional<Received>(
        {rank,
         {.call = call,
          .outcome = CallStatus::kFailed,
          .text = "it was started anew, or two processes have this rank"}});
  }
  if (found->call() < call) return std::optional<Received>();
  word = found->word();
  CAIRN_TRY_ASSIGN(auto received, take(rank, *std::move(found)));
  return std::optional(std::move(received));
}

// The alarm names the rank; what it has to say stands in its own message.
Result<std::optional<Received>> RendezvousChannel::hear_alarm(std::uint64_t call) {
  CAIRN_TRY_ASSIGN(const auto found, find(alarm_key()));
  if (!found || found->call() < call) return std::optional<Received>();
  const Json* member = found->header.json.find("rank");
  const auto rank = member != nullptr ? member->integer() : std::nullopt;
  if (!rank || *rank < 1 || *rank >= place_.count) return std::optional<Received>();
  return hear_rank(call, static_cast<int>(*rank));
}

Result<std::optional<Received>> RendezvousChannel::hear_verdict(std::uint64_t call) {
  CAIRN_TRY_ASSIGN(auto found, find(kVerdict));
  if (!found || !is_word(found->session())) return std::optional<Received>();
  if (found->session() == replaced_) return std::optional<Received>();
  if (found->session() != session_) CAIRN_TRY(follow(*found));
  if (unanswered_) CAIRN_TRY(answer());
  if (found->call() < call) return std::optional<Received>();
  if (!admitted_) CAIRN_TRY(check_admission(*found));
  CAIRN_TRY_ASSIGN(auto received, take(0, *std::move(found)));
  return std::optional(std::move(received));
}

Result<void> RendezvousChannel::follow(const Found& found) {
  if (admitted_) return taken_over();
  if (!session_.empty()) store_->remove(key_of(place_.rank)).ignore_error("a job that ended");
  session_ = found.session();
  replaced_ = text_in(found.header.json, "replaces");
  unanswered_ = true;
  return {};
}

Result<void> RendezvousChannel::look_around() {
  CAIRN_TRY_ASSIGN(const auto found, find(kVerdict));
  if (!found) return {};
  old_session_ = found->session();
  old_call_ = found->call();
  return {};
}

Result<void> RendezvousChannel::check_admission(const Found& found) {
  const Json* member = found.header.json.find("words");
  const Json::Array* words = member != nullptr ? member->array() : nullptr;
  const auto rank = static_cast<std::size_t>(place_.rank);
  const std::string* word =
      words != nullptr && rank < words->size() ? (*words)[rank].text() : nullptr;
  if (word != nullptr && *word == word_) {
    admitted_ = true;
    return {};
  }
  // It had met before this rank came, and may go on without it: an earlier job that still runs.
  if (found.session() == old_session_ && old_call_ > 0) {
    return Error(Code::kUnavailable, "coord/earlier-job",
                 fmt::format("this is from an earlier job; or, in this one, rank 0 failed before "
                             "this rank came, or another process takes part as rank {}",
                             place_.rank))
        .in(store_->describe(kVerdict));
  }
  if (found.header.message.outcome != CallStatus::kDone) return {};
  return rank_taken(place_.rank).in(store_->describe(kVerdict));
}

Result<void> RendezvousChannel::put(const std::string& key, const Message& message) {
  Json::Object extra;
  extra.emplace_back("rank", place_.rank);
  extra.emplace_back(place_.rank == 0 ? "session" : "word", word_);
  if (place_.rank == 0 && message.call >= 1 && message.call <= kCallsThatAdmit) {
    extra.emplace_back("words", Json::Array(words_.begin(), words_.end()));
  }
  if (place_.rank == 0 && !old_session_.empty()) extra.emplace_back("replaces", old_session_);
  CAIRN_TRY_ASSIGN(const Buffer bytes, encode_message(message, extra));
  CAIRN_TRY(store_->put(key, bytes.bytes()));
  return {};
}

Result<std::optional<Found>> RendezvousChannel::find(const std::string& key) {
  auto reader = store_->open(key);
  if (!reader) {
    if (reader.error().code() == Code::kNotFound) return std::optional<Found>();
    return std::move(reader).error();
  }
  const std::uint64_t size = (*reader)->size();
  CAIRN_TRY_ASSIGN(std::string line,
                   read_text(**reader, std::min<std::uint64_t>(size, kFirstRead)));
  if (line.find('\n') == std::string::npos && size > kFirstRead) {
    CAIRN_TRY_ASSIGN(line, read_text(**reader, std::min<std::uint64_t>(size, kMaxHeader)));
  }
  auto header = decode_header(line, size);
  if (!header) return std::move(header).error().in(store_->describe(key));
  return std::optional<Found>({*std::move(header), *std::move(reader)});
}

Result<Received> RendezvousChannel::take(int from, Found found) {
  auto& [message, at, size, json] = found.header;
  CAIRN_TRY_ASSIGN(Buffer payload, Buffer::allocate(size));
  CAIRN_TRY(found.reader->read_at(at, payload.mutable_bytes()));
  message.payload = Buffer::lend(payload.bytes(), std::make_shared<const Buffer>(payload));
  return Received{from, std::move(message)};
}

}  // namespace

Result<std::unique_ptr<Coordinator>> open_rendezvous(std::shared_ptr<storage::Store> store,
                                                     Place place, Clock& clock,
                                                     Interrupted interrupted) {
  CAIRN_TRY(check_place(place));
  CAIRN_TRY_ASSIGN(std::string word, draw_word());
  auto channel =
      std::make_unique<RendezvousChannel>(std::move(store), place, clock, std::move(word));
  CAIRN_TRY(place.rank == 0 ? channel->take_over() : channel->look_around());
  return make_coordinator(std::move(channel), std::move(interrupted));
}

}  // namespace cairn::coord
