#include "plugin/transport/nccl_net/context.h"

#include <utility>

#include "plugin/config/log.h"

namespace riffle::nccl_net {
namespace {

void warn_of_unknown() {
  log_warn("NET or COLLNET is called with a context that init did not give, or that was finalized");
}

}  // namespace

void* Contexts::add(std::unique_ptr<Context> context) {
  void* const key = context.get();
  const std::lock_guard lock(mutex_);
  alive_.emplace(key, std::move(context));
  return key;
}

Context* Contexts::find(void* context) {
  const std::lock_guard lock(mutex_);
  const auto found = alive_.find(context);
  if (found != alive_.end()) return found->second.get();
  warn_of_unknown();
  return nullptr;
}

std::unique_ptr<Context> Contexts::take(void* context) {
  const std::lock_guard lock(mutex_);
  auto node = alive_.extract(context);
  if (!node.empty()) return std::move(node.mapped());
  warn_of_unknown();
  return nullptr;
}

Contexts& contexts() {
  static Contexts& all = *new Contexts;  // outlives every thread
  return all;
}

}  // namespace riffle::nccl_net
