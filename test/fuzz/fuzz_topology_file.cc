// Topology files of any text, Slurm's and topograph's: racks for every node, or an error that names
// the file.
#include <string>

#include "test/fuzz/target.h"
#include "topology/fabric/racks_file.h"

namespace riffle::fuzz {
namespace {

Bytes bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

}  // namespace

std::vector<Bytes> seeds() {
  return {
      bytes_of("# tree\nSwitchName=core Switches=leaf[1-2] LinkSpeed=8\n"
               "SwitchName=leaf1 Nodes=a,r[1-2]n[01-03]\nSwitchName=leaf2 \\\n  Nodes=\"b\"\n"),
      bytes_of("# block001=nvl-1\nBlockName=block001 Nodes=a\nBlockName=block002 Nodes=b\n"
               "BlockSizes=1,2\n"),
      bytes_of("- topology: t\n  cluster_default: true\n  tree:\n    switches:\n"
               "        - switch: s1\n          children: s[2-3]\n"
               "        - switch: s2\n          nodes: a\n"
               "        - switch: s3\n          nodes: b,n[4,6-7]\n"),
      bytes_of("- topology: u\n  block:\n    block_sizes: [1]\n    blocks:\n"
               "    - block: b1\n      nodes: 'a'\n    - block: b2\n      nodes: \"b\"\n"
               "- topology: f\n  flat: true\n"),
      bytes_of("{\"instances\": [{\"id\": \"a\", \"network_layers\": [\"l1\", \"s\"]},\n"
               "{\"id\": \"b\", \"network_layers\": [\"l2\"], \"labels\": {\"k\": \"v\\u0041\"}}"
               "]}")};
}

void try_input(std::span<const std::uint8_t> input) {
  const std::string text(input.begin(), input.end());
  const std::vector<NodeAliases> nodes{{"a", "10.0.0.1"}, {"b.cluster"}};
  const Result<Racks> racks = parse_racks(text, "some.conf", nodes);
  if (!racks) {
    const std::string& message = racks.status().message();
    require(racks.status().code() == Code::kInvalidArgument, "not the input's fault: " + message);
    require(message.starts_with("topology file some.conf"), "error without the file: " + message);
    return;
  }
  Fabric fabric = even_fabric(static_cast<int>(nodes.size()), 1000);
  put_into_racks(*racks, fabric);
  const Status valid = validate(fabric);
  require(valid.is_ok(), "read, yet invalid: " + valid.message());
}

}  // namespace riffle::fuzz
