#include "tools/doctor/verdicts.h"

#include <algorithm>
#include <utility>

namespace riffle::tools {

void Verdicts::add(Verdict verdict) {
  const auto is_said = [&](const Verdict& v) { return v.text == verdict.text; };
  if (std::ranges::none_of(all_, is_said)) all_.push_back(std::move(verdict));
}

int Verdicts::problems() const {
  return static_cast<int>(std::ranges::count(all_, Verdicts::Kind::kProblem, &Verdict::kind));
}

std::string Verdicts::text() const {
  std::string text;
  for (const Verdicts::Verdict& v : all_) {
    const char* word = v.kind == Verdicts::Kind::kGood   ? "ok   "
                       : v.kind == Verdicts::Kind::kNote ? "note "
                                                         : "WRONG";
    text += std::string("  ") + word + " " + v.text + "\n";
    if (!v.remedy.empty()) text += "        remedy: " + v.remedy + "\n";
  }
  const int count = problems();
  return text +
         (count == 0   ? "no problem"
          : count == 1 ? "1 problem"
                       : std::to_string(count) + " problems") +
         "\n";
}

std::string Verdicts::fixes() const {
  std::vector<std::string> lines;
  std::string text;
  for (const Verdicts::Verdict& v : all_) {
    if (!v.is_line || std::ranges::find(lines, v.remedy) != lines.end()) continue;
    lines.push_back(v.remedy);
    text += v.remedy + "\n";
  }
  return text;
}

}  // namespace riffle::tools
