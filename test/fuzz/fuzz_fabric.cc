// Fabric files of any text: a fabric that checks out, or an error that names the file.
#include <string>

#include "test/fuzz/target.h"
#include "topology/fabric/fabric_file.h"

namespace riffle::fuzz {

std::vector<Bytes> seeds() {
  const Fabric racks{{{"a", 400000, 400000, 0}, {"b", 100000, 200000, 1}, {"c", 400000, 400000, 1}},
                     {{"left", 200000, 200000}, {"right", 0, 0}}};
  const std::string text = to_toml(racks);
  return {Bytes(text.begin(), text.end())};
}

void try_input(std::span<const std::uint8_t> input) {
  const std::string text(input.begin(), input.end());
  const std::vector<NodeAliases> nodes{{"a", "10.0.0.1"}, {"b"}, {"unknown"}};
  const Result<LoadedFabric> loaded = parse_fabric(text, "some.toml", nodes);
  if (!loaded) {
    const std::string& message = loaded.status().message();
    require(message.find("some.toml") != std::string::npos, "error without the file: " + message);
    return;
  }
  require(loaded->fabric.nodes.size() == nodes.size(), "not one entry per rank");
  const Status valid = validate(loaded->fabric);
  require(valid.is_ok(), "loaded, yet invalid: " + valid.message());
}

}  // namespace riffle::fuzz
