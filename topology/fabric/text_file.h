// A whole text file, read so that nothing can block or be endless: regular files of bounded size.
#pragma once

#include <string>

#include "topology/base/status.h"

namespace riffle {

// `what` begins every message ("fabric file"), `knob` is the setting to check if there is no such
// file.
Result<std::string> read_text_file(const std::string& path, const std::string& what,
                                   const std::string& knob);

}  // namespace riffle
