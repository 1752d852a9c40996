// Deliveries: what closed links of one mesh have still to bring to the peers' machines. The process
// should not end before: where anything reaches a connection of a process that is gone, the kernel
// resets it, and what was still to leave is lost.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

namespace riffle {

class Deliveries {
 public:
  // One that is under way, for as long as this exists. Any thread.
  class One {
   public:
    explicit One(std::shared_ptr<Deliveries> of);  // null: of none
    ~One();
    One(const One&) = delete;
    One& operator=(const One&) = delete;

   private:
    const std::shared_ptr<Deliveries> of_;
  };

  // Until none is under way; false: the time was over. Any thread but a reactor's, which delivers.
  bool wait(std::chrono::nanoseconds longest);

 private:
  void add(int more);

  std::mutex mutex_;
  std::condition_variable changed_;
  int under_way_ = 0;
};

}  // namespace riffle
