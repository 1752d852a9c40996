// Profiles as TOML files (docs/emulator.md has every key). Every fault of a file is a Status naming
// file, key and accepted values. No state, any thread.
#pragma once

#include <string>
#include <vector>

#include "lab/cluster/profile.h"

namespace riffle::cluster {

Result<Profile> parse_profile(const std::string& text, const std::string& origin);
// A path, the name of a file in `folder`, or random:SEED (random_profile.h).
Result<Profile> load_profile(const std::string& name, const std::string& folder);
// The names in a folder, sorted.
std::vector<std::string> profile_names(const std::string& folder);

// The profile as a file that parse_profile reads back.
std::string to_toml(const Profile& profile);

}  // namespace riffle::cluster
