#include "plugin/config/knob_table.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>
#include <type_traits>

namespace riffle {
namespace {

struct Suffix {
  char letter;
  std::int64_t factor;
};
constexpr std::array<Suffix, 3> kSuffixes{{{'G', 1LL << 30}, {'M', 1LL << 20}, {'K', 1LL << 10}}};

std::optional<std::int64_t> parse_integer(std::string_view text, bool suffix_allowed) {
  std::int64_t factor = 1;
  if (suffix_allowed && !text.empty()) {
    const char last = static_cast<char>(std::toupper(static_cast<unsigned char>(text.back())));
    for (const Suffix& suffix : kSuffixes) {
      if (last == suffix.letter) factor = suffix.factor;
    }
    if (factor != 1) text.remove_suffix(1);
  }
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  std::int64_t product = 0;
  if (__builtin_mul_overflow(number, factor, &product)) return std::nullopt;
  return product;
}

std::string integer_text(std::int64_t number, std::string_view unit) {
  if (unit == "bytes" && number != 0) {
    for (const Suffix& suffix : kSuffixes) {
      if (number % suffix.factor == 0) {
        return std::to_string(number / suffix.factor) + suffix.letter;
      }
    }
  }
  return std::to_string(number);
}

std::optional<bool> parse_switch(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (lower == "1" || lower == "on" || lower == "yes" || lower == "true") return true;
  if (lower == "0" || lower == "off" || lower == "no" || lower == "false") return false;
  return std::nullopt;
}

bool is_choice(std::string_view choices, std::string_view text) {
  while (true) {
    const std::size_t bar = choices.find('|');
    if (choices.substr(0, bar) == text) return true;
    if (bar == std::string_view::npos) return false;
    choices.remove_prefix(bar + 1);
  }
}

bool is_label(std::string_view text, std::size_t most) {
  const auto is_printable = [](char c) { return c >= ' ' && c <= '~'; };
  return !text.empty() && text.size() <= most && std::ranges::all_of(text, is_printable);
}

std::optional<std::int64_t> parse(const Knob& knob, std::string_view text, std::int64_t /*kind*/) {
  const auto number = parse_integer(text, knob.unit == "bytes");
  return number && *number >= knob.min && *number <= knob.max ? number : std::nullopt;
}
std::optional<bool> parse(const Knob&, std::string_view text, bool /*kind*/) {
  return parse_switch(text);
}
std::optional<std::string> parse(const Knob& knob, std::string_view text,
                                 const std::string& /*kind*/) {
  if (!knob.choices.empty() && !is_choice(knob.choices, text)) return std::nullopt;
  if (knob.max > 0 && !is_label(text, static_cast<std::size_t>(knob.max))) return std::nullopt;
  return std::string(text);
}

}  // namespace

const std::vector<Knob>& knob_table() {
  // Never destroyed: other threads may still ask while the process exits.
  static const auto* table = new std::vector<Knob>{
#define RIFFLE_INT(field, name, default_value, min, max, unit, digest, help) \
  {name, &Config::field, digest, help, min, max, unit, ""},
#define RIFFLE_BOOL(field, name, default_value, digest, help) \
  {name, &Config::field, digest, help, 0, 0, "", ""},
#define RIFFLE_CHOICE(field, name, default_value, choices, digest, help) \
  {name, &Config::field, digest, help, 0, 0, "", choices},
#define RIFFLE_TEXT(field, name, default_value, digest, help) \
  {name, &Config::field, digest, help, 0, 0, "", ""},
#define RIFFLE_LABEL(field, name, most, digest, help) \
  {name, &Config::field, digest, help, 1, most, "", ""},
#include "plugin/config/knobs.def"
#undef RIFFLE_INT
#undef RIFFLE_BOOL
#undef RIFFLE_CHOICE
#undef RIFFLE_TEXT
#undef RIFFLE_LABEL
  };
  return *table;
}

Config default_config() {
  Config config;
#define RIFFLE_INT(field, name, default_value, min, max, unit, digest, help) \
  config.field = default_value;
#define RIFFLE_BOOL(field, name, default_value, digest, help) config.field = default_value;
#define RIFFLE_CHOICE(field, name, default_value, choices, digest, help) \
  config.field = default_value;
#define RIFFLE_TEXT(field, name, default_value, digest, help) config.field = default_value;
#define RIFFLE_LABEL(field, name, most, digest, help)
#include "plugin/config/knobs.def"
#undef RIFFLE_INT
#undef RIFFLE_BOOL
#undef RIFFLE_CHOICE
#undef RIFFLE_TEXT
#undef RIFFLE_LABEL
  return config;
}

Status set_knob(const Knob& knob, std::string_view text, Config& config) {
  return std::visit(
      [&](auto field) {
        using Value = std::remove_cvref_t<decltype(config.*field)>;
        auto value = parse(knob, text, Value{});
        if (!value) return invalid_argument("accepted is " + range_text(knob));
        config.*field = *std::move(value);
        return Status::ok();
      },
      knob.field);
}

std::string value_text(const Knob& knob, const Config& config) {
  struct Printer {
    const Knob& knob;
    const Config& config;
    std::string operator()(std::int64_t Config::*field) const {
      return integer_text(config.*field, knob.unit);
    }
    std::string operator()(bool Config::*field) const { return config.*field ? "1" : "0"; }
    std::string operator()(std::string Config::*field) const { return config.*field; }
  };
  return std::visit(Printer{knob, config}, knob.field);
}

std::string type_text(const Knob& knob) {
  if (std::holds_alternative<std::int64_t Config::*>(knob.field)) return "integer";
  if (std::holds_alternative<bool Config::*>(knob.field)) return "switch";
  return knob.choices.empty() ? "text" : "choice";
}

std::string range_text(const Knob& knob) {
  if (std::holds_alternative<std::int64_t Config::*>(knob.field)) {
    std::string range = integer_text(knob.min, knob.unit);
    range += "..";
    range += integer_text(knob.max, knob.unit);
    return range;
  }
  if (std::holds_alternative<bool Config::*>(knob.field)) return "0|1";
  if (!knob.choices.empty()) return std::string(knob.choices);
  return knob.max > 0 ? "1.." + std::to_string(knob.max) + " printable characters" : "any text";
}

}  // namespace riffle
