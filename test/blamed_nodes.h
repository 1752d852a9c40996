// Whom a sentence about a failed connect, or a failed communicator, says to be lost. (It names
// others too: whoever reports it.)
#pragma once

#include <regex>
#include <set>
#include <string>

namespace riffle {

inline std::set<int> blamed_in(const std::string& text) {
  static const std::regex kOne("lost node (\\d+)|node (\\d+) (\\([^)]*\\) )?closed its");
  static const std::regex kMany("(sign of life from|waiting for) node\\(s\\) ([0-9, ]+)");
  static const std::regex kNumber("\\d+");
  std::set<int> blamed;
  for (std::sregex_iterator m(text.begin(), text.end(), kOne), end; m != end; ++m) {
    blamed.insert(std::stoi((*m)[1].matched ? (*m)[1] : (*m)[2]));
  }
  for (std::sregex_iterator m(text.begin(), text.end(), kMany), end; m != end; ++m) {
    const std::string list = (*m)[2];
    for (std::sregex_iterator n(list.begin(), list.end(), kNumber), last; n != last; ++n) {
      blamed.insert(std::stoi(n->str()));
    }
  }
  return blamed;
}

}  // namespace riffle
