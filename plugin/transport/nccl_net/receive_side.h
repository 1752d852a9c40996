// ReceiveSide: the library's listener for one peer and the connection that comes from it, with
// receives posted ahead for as many messages as the library takes.
//
// As SendSide in errors, threads and requests that are over.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "plugin/transport/nccl_net/library_frame.h"
#include "plugin/transport/nccl_net/slots.h"

namespace riffle::nccl_net {

class ReceiveSide {
 public:
  ReceiveSide(const Net& net, void* context, int device, std::size_t slots, std::string peer)
      : net_(net), context_(context), device_(device), peer_(std::move(peer)), slots_(slots) {}

  // Writes the handle for the peer's connect.
  Status listen(std::span<std::byte, kLibraryHandleBytes> handle);
  // Asks the library once. Ok and not yet up: it is still at it.
  Status accept();
  bool is_up() const { return slots_.is_open(); }

  // Posts as many receives as there are slots for, or as the library takes. True: some.
  Result<bool> post();
  // The oldest message, if it is in; else empty. Its bytes stay until release().
  Result<std::span<const std::byte>> take();
  // Whether the library has ever told how long a message is. NCCL does without, and
  // google/nccl-fastsocket never does; then the bytes are the whole slot.
  bool tells_size() const { return tells_size_; }
  // Its slot is free for another receive.
  void release() { ++released_; }

  std::uint64_t posted() const { return posted_; }  // receives so far
  std::uint64_t taken() const { return taken_; }    // messages so far
  std::size_t slots() const { return slots_.count(); }
  bool is_posted() const { return posted_ > taken_; }
  void close();

 private:
  Result<bool> post_one();

  const Net& net_;
  void* const context_;
  const int device_;
  const std::string peer_;
  void *listener_ = nullptr, *comm_ = nullptr;
  Slots slots_;
  std::array<void*, kMostSlots> requests_{};
  std::uint64_t posted_ = 0, taken_ = 0, released_ = 0;
  bool tells_size_ = false;
};

}  // namespace riffle::nccl_net
