#include "plugin/config/caught.h"

#include <exception>
#include <new>

#include "plugin/config/log.h"

namespace riffle {
namespace {

// Short enough for a string to hold it without memory of its own.
constexpr char kNoMemory[] = "out of memory";
constexpr char kUnknown[] = "internal error";

Status named(const char* what) noexcept {
  try {
    return internal_error(std::string(kUnknown) + ": " + what);
  } catch (...) {
    return internal_error(kUnknown);
  }
}

}  // namespace

Status caught() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return internal_error(kNoMemory);
  } catch (const std::exception& e) {
    return named(e.what());
  } catch (...) {
    return named("an exception of an unknown type");
  }
}

void log_caught(const char* what, const Status& why) noexcept {
  try {
    log_warn("{}: {}", what, why.message());
  } catch (...) {
    // The error alone has to do.
  }
}

}  // namespace riffle
