#include "test/training/trainer.h"

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "lab/nccl_host/communicator.h"
#include "lab/nccl_host/tables/plugin_library.h"
#include "test/training/rendezvous.h"

namespace {

std::string last_error;

// The C border: a Status becomes 0 or 1 and a message, an exception likewise.
template <class Function>
int guarded(Function function) {
  riffle::Status status;
  try {
    status = function();
  } catch (const std::exception& e) {
    status = riffle::internal_error(e.what());
  }
  if (!status) last_error = status.message();
  return status ? 0 : 1;
}

riffle::Status parse(const std::string& name, std::optional<riffle::host::Algorithm>* algorithm) {
  using riffle::host::Algorithm;
  if (name == "ring") *algorithm = Algorithm::kRing;
  if (name == "tree") *algorithm = Algorithm::kTree;
  if (name == "collnet") *algorithm = Algorithm::kCollNetChain;
  if (*algorithm || name.empty()) return riffle::Status::ok();
  return riffle::invalid_argument("algorithm \"" + name +
                                  "\": accepted are ring, tree, collnet and nothing");
}

}  // namespace

struct riffle_trainer {  // members end in reverse order
  std::unique_ptr<riffle::training::Rendezvous> rendezvous;
  std::shared_ptr<riffle::host::PluginLibrary> library;
  std::unique_ptr<riffle::host::Communicator> communicator;

  riffle::Status open(int rank, int ranks, const std::string& path, const std::string& plugin,
                      const std::string& algorithm) {
    riffle::host::Options options;
    if (riffle::Status s = parse(algorithm, &options.algorithm); !s) return s;
    auto joined = riffle::training::Rendezvous::join(path, rank, ranks);
    if (!joined) return joined.status();
    rendezvous = std::move(*joined);
    auto loaded = riffle::host::PluginLibrary::load(plugin, {});
    if (!loaded) return loaded.status();
    library = std::move(*loaded);
    auto made = riffle::host::Communicator::create(*library, rendezvous->bootstrap(), options);
    if (!made) return made.status();
    communicator = std::move(*made);
    return riffle::Status::ok();
  }
};

riffle_trainer* riffle_trainer_open(int rank, int ranks, const char* rendezvous, const char* plugin,
                                    const char* algorithm) {
  std::unique_ptr<riffle_trainer> trainer;
  const int failed = guarded([&] {
    trainer = std::make_unique<riffle_trainer>();
    return trainer->open(rank, ranks, rendezvous, plugin, algorithm);
  });
  return failed ? nullptr : trainer.release();
}

int riffle_trainer_all_reduce(riffle_trainer* trainer, float* data, size_t count) {
  return guarded([&] {
    return trainer->communicator->all_reduce(data, data, count, riffle::DataType::kFloat32,
                                             riffle::host::Op::kSum);
  });
}

int riffle_trainer_wait(riffle_trainer* trainer) {
  return guarded([&] { return trainer->communicator->wait(); });
}

uint64_t riffle_trainer_collnet_calls(const riffle_trainer* trainer) {
  return trainer->communicator->collnet_calls();
}

int riffle_trainer_close(riffle_trainer* trainer) {
  std::unique_ptr<riffle_trainer> owned(trainer);
  return guarded([&] { return owned->communicator->destroy(); });
}

const char* riffle_trainer_error(void) { return last_error.c_str(); }
