#include "topology/fabric/yaml_subset.h"

#include <charconv>
#include <utility>

#include "topology/fabric/switch_table.h"

namespace riffle {
namespace {

constexpr int kMaxDepth = 32;

bool is_line_end(char c) { return c == '\n' || c == '\r' || c == '\0'; }
bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool ends_key(char c) { return is_blank(c) || is_line_end(c); }
bool is_flow_sign(char c) { return c == ',' || c == '[' || c == ']' || c == '{' || c == '}'; }

// Keeps the first fault; after it every step returns at once with nothing.
class Reader {
 public:
  Reader(std::string_view text, const std::string& origin) : text_(text), origin_(origin) {}

  Result<YamlValue> read() {
    if (text_.substr(0, 3) == "---" && is_line_end(peek(3))) at_ = 3;
    YamlValue value = block(0, 0);
    skip_blank();
    if (fault_ && at_ < text_.size()) fail("what stands here does not belong to the above");
    if (!fault_) return fault_;
    return value;
  }

 private:
  // The byte `ahead` of here; 0 at the end. A 0 in the text is refused as a scalar's byte.
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  std::size_t column() const { return at_ - line_begin_; }
  bool is_over() const { return !fault_ || at_ >= text_.size(); }
  bool is_dash() const { return peek() == '-' && ends_key(peek(1)); }
  bool is_colon() const { return peek() == ':' && ends_key(peek(1)); }

  void fail(const std::string& what) {
    if (fault_) fault_ = topology_fault(origin_, line_, what);
  }

  // To the next token, over blanks, comments and ends of lines.
  void skip_blank() {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '#' && (at_ == 0 || ends_key(text_[at_ - 1]))) {
        while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
      } else if (c == '\n') {
        ++line_;
        line_begin_ = at_ + 1;
      } else if (!is_blank(c) && c != '\r') {
        return;
      }
    }
  }
  void skip_inline() {
    while (is_blank(peek())) ++at_;
  }
  // True if nothing but a comment follows in this line.
  bool rest_is_empty() {
    skip_inline();
    return at_ >= text_.size() || is_line_end(peek()) ||
           (peek() == '#' && (at_ == 0 || ends_key(text_[at_ - 1])));
  }

  YamlValue made(YamlValue::Kind kind) const {
    YamlValue value;
    value.kind = kind;
    value.line = line_;
    return value;
  }

  bool may_go_deeper(int depth) {
    if (depth > kMaxDepth) fail("nested deeper than " + std::to_string(kMaxDepth) + " levels");
    return fault_.is_ok();
  }

  // Whatever begins at the next token, if that stands at column `least` or further right.
  YamlValue block(std::size_t least, int depth) {
    skip_blank();
    if (is_over() || column() < least || !may_go_deeper(depth)) return made(YamlValue::Kind::kNull);
    for (std::size_t i = line_begin_; i < at_; ++i) {
      if (text_[i] == '\t') fail("a tab indents; accepted are spaces");
    }
    if (is_dash()) return list(column(), depth);
    if (peek() == '[' || peek() == '{') return closed(flow(depth));
    const std::size_t start = at_;
    const std::size_t indent = column();
    YamlValue value = scalar(false);
    skip_inline();
    if (!fault_ || !is_colon()) return closed(std::move(value));
    at_ = start;
    return map(indent, depth);
  }

  // A value that must be the last in its line.
  YamlValue closed(YamlValue value) {
    if (fault_ && !rest_is_empty()) fail("expected the end of the line after a value");
    return value;
  }

  YamlValue list(std::size_t indent, int depth) {
    YamlValue value = made(YamlValue::Kind::kList);
    while (!is_over() && column() == indent && is_dash()) {
      ++at_;
      value.items.push_back(block(indent + 1, depth + 1));
      skip_blank();
    }
    if (!is_over() && column() > indent) fail("indented unlike the lines above");
    return value;
  }

  YamlValue map(std::size_t indent, int depth) {
    YamlValue value = made(YamlValue::Kind::kMap);
    while (!is_over() && column() == indent && !is_dash()) {
      YamlValue key = scalar(false);
      skip_inline();
      if (fault_ && !is_colon()) fail("expected \"key: value\"");
      if (!fault_) break;
      ++at_;
      value.keys.push_back(std::move(key.text));
      value.items.push_back(entry(indent, depth));
      skip_blank();
    }
    if (!is_over() && column() > indent) fail("indented unlike the lines above");
    return value;
  }

  // What follows "key:" of a map at `indent`.
  YamlValue entry(std::size_t indent, int depth) {
    if (rest_is_empty()) {
      skip_blank();
      const bool is_flat_list = !is_over() && column() == indent && is_dash();
      return block(is_flat_list ? indent : indent + 1, depth + 1);
    }
    if (peek() == '[' || peek() == '{') return closed(flow(depth + 1));
    return closed(scalar(false));
  }

  YamlValue flow(int depth) {
    if (!may_go_deeper(depth)) return {};
    const bool is_map = peek() == '{';
    const char close = is_map ? '}' : ']';
    YamlValue value = made(is_map ? YamlValue::Kind::kMap : YamlValue::Kind::kList);
    ++at_;
    while (fault_) {
      skip_blank();
      if (peek() == close) break;
      if (is_over()) fail(std::string("a ") + (is_map ? "{" : "[") + " is not closed");
      if (is_map) {
        YamlValue key = scalar(true);
        skip_blank();
        if (fault_ && peek() != ':') fail("expected \"key: value\"");
        if (!fault_) break;
        ++at_;
        value.keys.push_back(std::move(key.text));
        value.items.push_back(flow_item(depth));
      } else {
        value.items.push_back(flow_item(depth));
      }
      skip_blank();
      if (peek() == ',') {
        ++at_;
      } else if (fault_ && peek() != close) {
        fail(std::string("expected , or ") + close);
      }
    }
    ++at_;
    return value;
  }

  YamlValue flow_item(int depth) {
    skip_blank();
    if (peek() == '[' || peek() == '{') return flow(depth + 1);
    return scalar(true);
  }

  YamlValue scalar(bool in_flow) {
    YamlValue value = made(YamlValue::Kind::kScalar);
    if (peek() == '"' || peek() == '\'') {
      value.text = quoted(peek());
      return value;
    }
    if (std::string_view("&*!|>?%@`\"'#,[]{}").find(peek()) != std::string_view::npos) {
      fail("not accepted in a topology file: anchors, tags, block texts and the like");
      return value;
    }
    const std::size_t from = at_;
    for (; !is_line_end(peek()); ++at_) {
      if (is_colon() || (in_flow && (is_flow_sign(peek()) || peek() == ':'))) break;
      if (is_blank(peek()) && peek(1) == '#') break;
    }
    std::string_view text = text_.substr(from, at_ - from);
    while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
    if (text.empty()) fail("a value is missing");
    value.text = text;
    if (text == "null" || text == "~") value.kind = YamlValue::Kind::kNull;
    return value;
  }

  // On one line, with JSON's escapes.
  std::string quoted(char quote) {
    std::string text;
    for (++at_; peek() != quote || (quote == '\'' && peek(1) == '\''); ++at_) {
      if (is_line_end(peek())) {
        fail("a quote is not closed in its line");
        return text;
      }
      if (quote == '\'' && peek() == '\'') ++at_;
      if (quote == '"' && peek() == '\\') {
        ++at_;
        text += escaped();
      } else {
        text += peek();
      }
      if (!fault_) return text;
    }
    ++at_;
    return text;
  }

  // The character after a backslash. No name has control or foreign ones: they become '?'.
  char escaped() {
    const char c = peek();
    if (c == '"' || c == '\\' || c == '/') return c;
    if (c != '\0' && std::string_view("bfnrt").find(c) != std::string_view::npos) return '?';
    if (c == 'u' && at_ + 4 < text_.size()) {
      unsigned code = 0;
      const char* from = text_.data() + at_ + 1;
      const auto read = std::from_chars(from, from + 4, code, 16);
      if (read.ptr == from + 4) {
        at_ += 4;
        return code >= ' ' && code < 0x7f ? static_cast<char>(code) : '?';
      }
    }
    fail("an unknown escape; accepted are those of JSON");
    return '?';
  }

  std::string_view text_;
  const std::string& origin_;
  std::size_t at_ = 0, line_begin_ = 0;
  int line_ = 1;
  Status fault_;
};

}  // namespace

const YamlValue* YamlValue::find(std::string_view key) const {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] == key) return &items[i];
  }
  return nullptr;
}

Result<YamlValue> read_yaml(std::string_view text, const std::string& origin) {
  return Reader(text, origin).read();
}

}  // namespace riffle
