// The look of HTML pages around drawings: the same colours, light and dark.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace riffle::tools {

// For a <style> element.
std::string page_style();

// A complete page; `body` is HTML.
std::string html_page(const std::string& title, const std::string& body);

// Figures that are to be seen first: each a value and what it is.
std::string html_tiles(const std::vector<std::pair<std::string, std::string>>& tiles);

// The first row is the head where `has_head`; the first column is to the left, figures to the
// right.
std::string html_table(const std::vector<std::vector<std::string>>& rows, bool has_head);

}  // namespace riffle::tools
