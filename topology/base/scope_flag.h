// ScopeFlag: a flag that is true while a scope runs, also when it ends by an exception.
#pragma once

namespace riffle {

class ScopeFlag {
 public:
  explicit ScopeFlag(bool& flag) : flag_(flag) { flag_ = true; }
  ~ScopeFlag() { flag_ = false; }
  ScopeFlag(const ScopeFlag&) = delete;
  ScopeFlag& operator=(const ScopeFlag&) = delete;

 private:
  bool& flag_;
};

}  // namespace riffle
