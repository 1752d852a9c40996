// What an option accepts, in words of the command's help and manual page.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace riffle::tools {

// "5..600", "text|json", "SIZE"; of what CLI11 calls "INT:INT in [5 - 600]", "TEXT:{text,json}".
std::string accepted_by(const CLI::Option& option);

// CLI11's own layout of help texts, with accepted_by() for types.
class HelpText : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override;
};

}  // namespace riffle::tools
