#include "tools/live/exposition.h"

#include "topology/base/printed.h"

namespace riffle::tools {
namespace {

std::string label_value(const std::string& value) {
  std::string text;
  for (const char c : value) {
    if (c == '\n') {
      text += "\\n";
    } else {
      if (c == '"' || c == '\\') text += '\\';
      text += c;
    }
  }
  return text;
}

std::string label_text(const Exposition::Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels) {
    text += (text.empty() ? "{" : ",") + name + "=\"" + label_value(value) + "\"";
  }
  return text.empty() ? text : text + "}";
}

}  // namespace

void Exposition::counter(const std::string& name, const char* help, const Labels& labels,
                         std::uint64_t value) {
  add(name, "counter", help, labels, std::to_string(value));
}

void Exposition::counter_s(const std::string& name, const char* help, const Labels& labels,
                           std::uint64_t value_us) {
  const auto us = static_cast<unsigned long long>(value_us);
  add(name, "counter", help, labels, printed("%llu.%06llu", us / 1'000'000, us % 1'000'000));
}

void Exposition::gauge(const std::string& name, const char* help, const Labels& labels,
                       double value) {
  add(name, "gauge", help, labels, printed("%.15g", value));
}

void Exposition::add(const std::string& name, const char* type, const char* help,
                     const Labels& labels, const std::string& value) {
  Family& family = families_[name];
  if (family.head.empty()) {
    family.head = "# HELP " + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
  }
  family.samples += name + label_text(labels) + " " + value + "\n";
}

std::string Exposition::text() const {
  std::string text;
  for (const auto& [name, family] : families_) text += family.head + family.samples;
  return text;
}

}  // namespace riffle::tools
