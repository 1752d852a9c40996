#include "plugin/identity/identity.h"

#include <atomic>
#include <string>

#include "plugin/collective/base/sync_mode.h"
#include "plugin/config/config.h"
#include "plugin/config/log.h"

namespace riffle::identity {
namespace {

struct Thread {
  CallQueue queue;
  Thread() = default;
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;
  ~Thread() { book().retire(queue); }
};

void say_once(const CallIdentity& identity) {
  static std::atomic<bool> was_said{false};
  if (identity.is_sure || was_said.exchange(true)) return;
  log_info(std::string("identity of all-reduce calls: not sure of one: ") + identity.why_not +
           "; such calls stay exact");
}

// Without them something that was asked for is missing.
bool is_needed() {
  return config().identity == "on" ||
         (config().identity == "auto" &&
          (config().sync != "exact" || sparse_wish(config().sparse).is_on));
}

}  // namespace

bool is_wanted() { return is_needed() || (config().identity == "auto" && config().valid_length); }

bool is_told() { return is_wanted() && book().is_told(); }

bool is_looked_up() { return is_needed() || is_told(); }

// Never destroyed: NCCL's threads may outlive static objects.
IdentityBook& book() {
  static IdentityBook& the_book = *new IdentityBook;
  return the_book;
}

CallQueue& this_thread() {
  thread_local Thread thread;
  return thread.queue;
}

void begin_coll(std::uint64_t coll, int nodes) { book().begin_coll(coll, nodes); }
void add_region(std::uint64_t coll, const void* base, std::size_t bytes) {
  book().add_region(coll, base, bytes);
}
void drop_region(std::uint64_t coll, const void* base) { book().drop_region(coll, base); }

void end_coll(std::uint64_t coll) {
  book().end_coll(coll);
  const Counts seen = counts();
  if (config().identity != "on" || seen.sure + seen.unsure == 0) return;
  std::string line = "identity of all-reduce calls: sure of " + std::to_string(seen.sure) +
                     ", not of " + std::to_string(seen.unsure);
  if (seen.unsure != 0) line += std::string(", the last time because of: ") + seen.last_reason;
  log_info(line);
}

CallIdentity identify(const CallShape& call) {
  const CallIdentity identity = book().identify(this_thread(), call);
  say_once(identity);
  return identity;
}

CallIdentity look(const CallShape& call) { return book().look(this_thread(), call); }

Counts counts() { return book().counts(); }

}  // namespace riffle::identity
