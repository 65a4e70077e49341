#include "tracefs/control/request.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "tracefs/base/text_cursor.h"

namespace tracefs {
namespace {

using nlohmann::json;

// Receives what the parser finds, and stops it at the first thing that no
// request has. Only the request is built, so that memory is bounded by the
// length of the line.
class Reader final : public nlohmann::json_sax<json> {
 public:
  explicit Reader(ControlRequest* request) : request_(*request) {}

  const std::string& error() const { return error_; }

  bool null() override { return Refuse("null"); }
  bool boolean(bool /*value*/) override { return Refuse("true or false"); }
  bool number_integer(number_integer_t /*value*/) override {
    return Refuse("a negative number");
  }
  bool number_float(number_float_t /*value*/,
                    const string_t& /*text*/) override {
    return Refuse("a fraction or a number too large");
  }
  bool binary(binary_t& /*value*/) override { return Refuse("binary data"); }
  bool start_array(size_t /*elements*/) override { return Refuse("an array"); }
  bool end_array() override { return false; }

  bool number_unsigned(number_unsigned_t value) override {
    if (depth_ == 0) return Refuse("a number");
    if (table_ != nullptr) {
      if (!table_->try_emplace(key_, value).second) return Twice();
      return true;
    }
    if (key_ == "id") {
      if (request_.id) return Twice();
      request_.id = value;
      return true;
    }
    if (!request_.numbers.try_emplace(key_, value).second) return Twice();
    return true;
  }

  bool string(string_t& value) override {
    if (depth_ == 0 || table_ != nullptr || key_ == "id") {
      return Refuse("a string");
    }
    if (key_ == "command") {
      if (!request_.command.empty()) return Twice();
      request_.command = std::move(value);
      return true;
    }
    if (!request_.texts.try_emplace(key_, std::move(value)).second) {
      return Twice();
    }
    return true;
  }

  bool start_object(size_t /*elements*/) override {
    if (depth_ == 2 || (depth_ == 1 && (key_ == "id" || key_ == "command"))) {
      return Refuse("an object");
    }
    if (++depth_ == 1) return true;
    const auto [at, added] = request_.tables.try_emplace(key_);
    if (!added) return Twice();
    table_ = &at->second;
    return true;
  }
  bool end_object() override {
    --depth_;
    table_ = nullptr;
    return true;
  }

  bool key(string_t& value) override {
    if (++(depth_ == 1 ? members_ : table_members_) >
        (depth_ == 1 ? kMaxRequestMembers : kMaxTableMembers)) {
      return Stop("too many members");
    }
    key_ = std::move(value);
    return true;
  }

  bool parse_error(size_t position, const std::string& /*last_token*/,
                   const nlohmann::detail::exception& /*why*/) override {
    return Stop("not JSON at byte " + std::to_string(position));
  }

 private:
  bool Stop(std::string error) {
    error_ = std::move(error);
    return false;
  }
  bool Refuse(std::string_view what) {
    return Stop(std::string(what) + (depth_ == 0
                                         ? " where an object was expected"
                                         : " is no value for " + Quoted(key_)));
  }
  bool Twice() { return Stop(Quoted(key_) + " is there twice"); }

  ControlRequest& request_;
  int depth_ = 0;
  size_t members_ = 0;
  size_t table_members_ = 0;
  std::string key_;
  ControlRequest::Table* table_ = nullptr;
  std::string error_;
};

}  // namespace

Status ControlRequest::Parse(std::string_view line, ControlRequest* request) {
  Reader reader(request);
  if (!json::sax_parse(line.begin(), line.end(), &reader)) {
    return Status::Invalid("request: " + reader.error());
  }
  if (request->command.empty()) {
    return Status::Invalid("request: no \"command\"");
  }
  return Status::Ok();
}

Status ControlRequest::CheckMembers(
    std::initializer_list<std::string_view> known) const {
  const auto check = [&](std::string_view name) {
    if (std::find(known.begin(), known.end(), name) != known.end()) {
      return Status::Ok();
    }
    return Status::Invalid("request: " + command + " takes no " + Quoted(name));
  };
  for (const auto& [name, value] : texts) {
    if (Status s = check(name); !s.ok()) return s;
  }
  for (const auto& [name, value] : numbers) {
    if (Status s = check(name); !s.ok()) return s;
  }
  for (const auto& [name, value] : tables) {
    if (Status s = check(name); !s.ok()) return s;
  }
  return Status::Ok();
}

Result<std::string> ControlRequest::Text(std::string_view name) const {
  const auto found = texts.find(name);
  if (found != texts.end()) return found->second;
  return Status::Invalid("request: " + command + " needs the string " +
                         Quoted(name));
}

Result<uint32_t> ControlRequest::Number(std::string_view name) const {
  const auto found = numbers.find(name);
  if (found != numbers.end() &&
      found->second <= std::numeric_limits<uint32_t>::max()) {
    return static_cast<uint32_t>(found->second);
  }
  return Status::Invalid("request: " + command + " needs the number " +
                         Quoted(name) + ", below 2^32");
}

const ControlRequest::Table& ControlRequest::NamesOf(
    std::string_view name) const {
  static const Table empty;
  const auto found = tables.find(name);
  return found != tables.end() ? found->second : empty;
}

}  // namespace tracefs
