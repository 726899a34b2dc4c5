// Realms made in advance, so that a cold start only has to compile the worker.
//
// Making a realm costs 2 to 3 ms of CPU. A thread of the lowest priority keeps some ready. Their number follows demand:
// when a worker finds none, the target doubles, up to wire::kSparesGrowth times the configured count. After a while
// without such a miss the surplus is released one by one. A configured count of zero stays zero.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "isolate/realm.h"

namespace engine {

class Spares final {
 public:
  Spares(const RealmFactory& factory, uint32_t count, size_t memory_bytes);
  Spares(const Spares&) = delete;
  Spares& operator=(const Spares&) = delete;

  // A realm with the given memory limit: a spare if it fits, otherwise a new one.
  std::unique_ptr<Realm> Take(size_t memory_bytes);
  // Makes the next spare. Called after the response is sent, so that no client waits for it.
  void Replenish();
  void Give(std::unique_ptr<Realm> realm);
  size_t count();

  // Memory is short: releases surplus spares and memory that the C library holds.
  void Trim();
  // Returns memory that the C library holds to the system. It keeps what V8's compilers have freed.
  void ReturnMemory();

  // Starts to fill. Separate from the constructor, so that nothing competes with making the first realm.
  void Start();

 private:
  void Fill();
  void Release(std::unique_lock<std::mutex>& lock);

  const RealmFactory& factory_;
  const uint32_t configured_;
  const size_t memory_bytes_;
  std::mutex mutex_;
  std::condition_variable taken_;
  std::vector<std::unique_ptr<Realm>> ready_;
  size_t target_;
  bool trim_ = false;
  bool return_memory_ = false;
};

}  // namespace engine
