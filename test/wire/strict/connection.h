// One direction between two connections of the strict plugin: messages with tags over a stream
// socket, received in place where a receive of the tag waits, else kept until one comes.
//
// Not thread safe: the plugin holds one lock over every call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <vector>

namespace strict {

struct Region {
  char* base;
  std::size_t size;
  int type;
};

struct Part {
  char* data;
  std::size_t size;  // of a receive: its capacity
  int tag;
  std::size_t arrived = 0;  // bytes of the message
  bool is_matched = false, is_complete = false;
};

struct Connection;

struct Request {
  Connection* connection;
  bool is_flush = false;
  std::vector<Part> parts;  // one for a send
  int patience = 0;         // tests that still say "not yet"
  bool is_over = false;     // told to be done
  bool is_failed = false;   // told to have failed
};

struct Header {
  std::uint32_t magic;
  std::int32_t tag;
  std::uint64_t size;
};

struct Message {  // that no receive waited for
  Header header;
  std::vector<char> data;
};

struct Connection {
  Connection(int socket, bool sends_, void* offload_);
  ~Connection();

  const int fd;
  const bool sends;
  void* const offload;  // device handle, may be null
  std::set<Region*> regions;
  std::list<std::unique_ptr<Request>> requests;  // newest last; over ones stay for a while
  bool is_broken = false;
  std::size_t last_size = 0;  // of the last message that test told of

  int outstanding() const;
  // Requests that are over are kept for a while; null: all of them still are.
  const Request* oldest_to_forget() const;
  Request* add(std::vector<Part> parts, int patience);
  // Moves what can be moved now.
  void progress();

 private:
  void send_on();
  void receive_on();
  void begin_message();
  Part* waiting_part(int tag);
  void take_kept();
  void drop_complete();

  std::deque<Request*> unsent_;
  std::size_t sent_ = 0;  // of the first of them, header included
  std::deque<Request*> posted_;
  Header header_{};
  std::size_t got_ = 0;  // of the message that arrives, header included
  Part* target_ = nullptr;
  std::list<Message> kept_;
};

}  // namespace strict
