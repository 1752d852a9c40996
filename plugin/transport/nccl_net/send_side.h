// SendSide: the library's connection to one peer, and the messages on their way over it, in order.
//
// A request whose test said done, or failed, is never tested again, whatever happens after: NCCL's
// contract gives it back to the library. Errors name the call, the peer and the library's code;
// after one the side is only closed. Threads: the reactor's, within a LibraryUse.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "plugin/transport/nccl_net/library_frame.h"
#include "plugin/transport/nccl_net/slots.h"

namespace riffle::nccl_net {

class SendSide {
 public:
  SendSide(const Net& net, void* context, int device, std::size_t slots, std::string peer)
      : net_(net), context_(context), device_(device), peer_(std::move(peer)), slots_(slots) {}

  // The peer's; once, before connect().
  void set_handle(std::span<const std::byte> handle);
  bool has_handle() const { return has_handle_; }
  // Asks the library once. Ok and not yet up: it is still at it.
  Status connect();
  bool is_up() const { return slots_.is_open(); }

  // Where the next message is to be written; null: all slots are taken.
  std::byte* free_slot() const {
    return begun_ - done_ < slots_.count() ? slots_.at(begun_) : nullptr;
  }
  // The slot has a message of so many bytes, which goes out as soon as the library takes it.
  void begin(std::size_t bytes);
  // Offers the library what it has not taken. True: it took something.
  Result<bool> push();
  // The bytes of the oldest message, whose slot is free again, if it has left; else 0.
  Result<std::size_t> take_done();

  std::uint64_t begun() const { return begun_; }  // messages so far
  bool is_under_way() const { return begun_ > done_; }
  bool is_refused() const { return begun_ > taken_; }  // the library takes no more now
  void close();

 private:
  const Net& net_;
  void* const context_;
  const int device_;
  const std::string peer_;
  alignas(16) std::array<std::byte, kLibraryHandleBytes> handle_{};  // the library writes into it
  bool has_handle_ = false;
  void* comm_ = nullptr;
  Slots slots_;
  struct Message {
    void* request = nullptr;
    std::size_t bytes = 0;
  };
  std::array<Message, kMostSlots> messages_{};
  std::uint64_t begun_ = 0, taken_ = 0, done_ = 0;
};

}  // namespace riffle::nccl_net
