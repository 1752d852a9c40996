// Prints docs/knobs.md as it should be: `build/test/style/riffle_knobs_page > docs/knobs.md`.
#include <cstdio>

#include "plugin/config/knobs_markdown.h"

int main() { return std::fputs(riffle::knobs_markdown().c_str(), stdout) < 0 ? 1 : 0; }
