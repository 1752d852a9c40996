// Text as one word of a language, so that its interpreter has exactly that text again. Text without
// special characters stays as it is where the language allows it.
#pragma once

#include <string>

namespace riffle::tools {

std::string sh_word(const std::string& text);
// A line break stays one, which csh cannot have in a word of `eval`.
std::string csh_word(const std::string& text);
std::string fish_word(const std::string& text);
std::string tcl_word(const std::string& text);
std::string lua_string(const std::string& text);

}  // namespace riffle::tools
