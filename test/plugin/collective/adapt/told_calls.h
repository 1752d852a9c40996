// Calls of which a test says what a node knows.
#pragma once

#include <cstdint>

#include "plugin/collective/base/mode_participant.h"

namespace riffle::testing {

class ToldCalls final : public ModeParticipant {
 public:
  SyncReport report() override { return now; }
  Result<Take> make(const ModeOrder&) override {
    return Take([] {});
  }
  std::uint64_t hold(std::uint64_t, std::uint64_t) override { return 0; }
  void use(std::uint64_t) override {}
  void drop() override {}
  ModeSpan span() override { return mode; }
  Status catch_up(const ModeSpan&, int, int) override { return Status::ok(); }

  SyncReport now;
  ModeSpan mode;
};

}  // namespace riffle::testing
