#include "plugin/telemetry/json_line.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

namespace riffle {

void JsonLine::begin(std::string_view key) {
  const char last = text_.back();
  if (last != '{' && last != '[') text_ += ',';
  if (key.empty()) return;
  quote(key);
  text_ += ':';
}

void JsonLine::quote(std::string_view value) {
  text_ += '"';
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      text_ += escape;
    } else if (static_cast<unsigned char>(c) >= 0x7f) {
      text_ += '?';  // names come from anywhere; the line stays valid in any encoding
    } else {
      text_ += c;
    }
  }
  text_ += '"';
}

JsonLine& JsonLine::add(std::string_view key, std::string_view value) {
  begin(key);
  quote(value);
  return *this;
}

JsonLine& JsonLine::add(std::string_view key, std::int64_t value) {
  return raw(key, std::to_string(value));
}

JsonLine& JsonLine::add(std::string_view key, std::uint64_t value) {
  return raw(key, std::to_string(value));
}

// As printf's %.6g, but in any locale.
JsonLine& JsonLine::add(std::string_view key, double value) {
  char text[40];
  const auto written = std::to_chars(text, text + sizeof text, std::isfinite(value) ? value : 0.0,
                                     std::chars_format::general, 6);
  return raw(key, {text, static_cast<std::size_t>(written.ptr - text)});
}

JsonLine& JsonLine::add(std::string_view key, bool value) {
  return raw(key, value ? "true" : "false");
}

JsonLine& JsonLine::open(std::string_view key, char bracket) {
  begin(key);
  text_ += bracket;
  return *this;
}

JsonLine& JsonLine::close(char bracket) {
  text_ += bracket;
  return *this;
}

JsonLine& JsonLine::raw(std::string_view key, std::string_view json) {
  begin(key);
  text_ += json;
  return *this;
}

std::string JsonLine::take() {
  text_ += "}\n";
  return std::move(text_);
}

}  // namespace riffle
