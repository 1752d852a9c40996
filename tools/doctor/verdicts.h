// What `riffle doctor` found, in the order in which it looked.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace riffle::tools {

class Verdicts {
 public:
  enum class Kind { kGood, kNote, kProblem };
  struct Verdict {
    Kind kind;
    std::string text;
    std::string remedy;    // of a problem, never empty
    bool is_line = false;  // the remedy is a line of sh, and does no harm
  };
  void good(std::string text) { add({Kind::kGood, std::move(text), ""}); }
  void note(std::string text) { add({Kind::kNote, std::move(text), ""}); }
  void problem(std::string text, std::string remedy) {
    add({Kind::kProblem, std::move(text), std::move(remedy)});
  }
  // A line of sh is all it takes.
  void problem_for_sh(std::string text, std::string line) {
    add({Kind::kProblem, std::move(text), std::move(line), true});
  }
  const std::vector<Verdict>& all() const { return all_; }
  int problems() const;

  // Two lines per problem, one for all others, and the sum.
  std::string text() const;
  // Only the remedies that are lines of sh, each once: for eval.
  std::string fixes() const;

 private:
  void add(Verdict verdict);  // nothing is said twice

  std::vector<Verdict> all_;
};

}  // namespace riffle::tools
