// One line of JSON, built front to back; commas and quotes take care of themselves.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace riffle {

class JsonLine {
 public:
  JsonLine() { text_ = "{"; }

  // In an object every value has a key, in an array none ("").
  JsonLine& add(std::string_view key, std::string_view value);
  JsonLine& add(std::string_view key, const char* value) {
    return add(key, std::string_view(value));
  }
  JsonLine& add(std::string_view key, std::int64_t value);
  JsonLine& add(std::string_view key, std::uint64_t value);
  JsonLine& add(std::string_view key, int value) { return add(key, std::int64_t{value}); }
  JsonLine& add(std::string_view key, double value);
  JsonLine& add(std::string_view key, bool value);
  JsonLine& open(std::string_view key, char bracket);  // '{' or '['
  JsonLine& close(char bracket);                       // '}' or ']'
  // `json` is a complete value already.
  JsonLine& raw(std::string_view key, std::string_view json);

  std::size_t size() const { return text_.size(); }
  // The line with its end; nothing may follow.
  std::string take();

 private:
  void begin(std::string_view key);
  void quote(std::string_view value);

  std::string text_;
};

}  // namespace riffle
