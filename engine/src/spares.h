// Realms made in advance, so that a cold start only has to compile the worker.
//
// Making a realm costs 2 to 3 ms of CPU. A thread of the lowest priority keeps a few ready; when they run out, whoever
// needs one makes it on the spot, from memory that the same thread has prepared.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "realm.h"

namespace engine {

class Spares final {
 public:
  Spares(const RealmFactory& factory, uint32_t count, size_t memory_bytes);
  Spares(const Spares&) = delete;
  Spares& operator=(const Spares&) = delete;

  // A realm with the given memory limit: a spare if it fits, else one that is made now. Once the answer has left, so
  // that nobody waits for it, Replenish() has another spare made, or memory prepared if there are enough of them.
  std::unique_ptr<Realm> Take(size_t memory_bytes, bool* made);
  void Replenish(bool made);
  void Give(std::unique_ptr<Realm> realm);
  size_t count();

  // Memory is short: give back what can be had without.
  void Trim();

  // Begins to fill. Separate from the constructor, so that the first realm is made in peace.
  void Start();

 private:
  void Fill();

  const RealmFactory& factory_;
  const uint32_t wanted_;
  const size_t memory_bytes_;
  std::mutex mutex_;
  std::condition_variable taken_;
  std::vector<std::unique_ptr<Realm>> ready_;
  bool trim_ = false;
  bool prepare_ = false;
};

}  // namespace engine
