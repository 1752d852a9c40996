// Connection handles as NCCL's bootstrap delivers them: decoded to something encodable, or refused.
#include <algorithm>

#include "plugin/transport/base/handle.h"
#include "plugin/version.h"
#include "test/fuzz/target.h"

namespace riffle::fuzz {

std::vector<Bytes> seeds() {
  HandleContent content;
  content.communicator = 42;
  content.plugin_version = kPluginVersion;
  content.endpoints = {{{127, 0, 0, 1}, 4711, false}, {{0xfe, 0x80}, 1, true}};
  const Handle handle = encode(content);
  return {Bytes(handle.bytes.begin(), handle.bytes.end())};
}

void try_input(std::span<const std::uint8_t> input) {
  Handle handle;
  std::copy_n(input.begin(), std::min(input.size(), handle.bytes.size()), handle.bytes.begin());
  const Result<HandleContent> content = decode(handle);
  if (!content) {
    require(!content.status().message().empty(), "refused without a reason");
    return;
  }
  require(!content->endpoints.empty() && content->endpoints.size() <= kHandleMaxEndpoints,
          "endpoints out of range");
  const Result<HandleContent> again = decode(encode(*content));
  require(again.is_ok() && again->communicator == content->communicator &&
              again->endpoints.size() == content->endpoints.size(),
          "does not survive another trip");
}

}  // namespace riffle::fuzz
