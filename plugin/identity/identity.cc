#include "plugin/identity/identity.h"

#include <atomic>
#include <string>

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
  log_info("identity of all-reduce calls: not sure of one: {}; such calls stay exact",
           identity.why_not);
}

}  // namespace

bool is_told() { return book().is_told(); }

bool is_looked_up(const Options& options) { return options.is_needed || is_told(); }

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

void end_coll(std::uint64_t coll, const Options& options) {
  book().end_coll(coll);
  const Counts seen = counts();
  if (!options.says_totals || seen.sure + seen.unsure == 0) return;
  log_info("identity of all-reduce calls: sure of {}, not of {}{}{}", seen.sure, seen.unsure,
           seen.unsure != 0 ? ", the last time because of: " : "",
           seen.unsure != 0 ? seen.last_reason : "");
}

CallIdentity identify(const CallShape& call) {
  const CallIdentity identity = book().identify(this_thread(), call);
  say_once(identity);
  return identity;
}

CallIdentity look(const CallShape& call) { return book().look(this_thread(), call); }

Counts counts() { return book().counts(); }

}  // namespace riffle::identity
