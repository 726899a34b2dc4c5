// The databases of one worker's objects, by slot. A worker without objects has none of this.
#pragma once

#include <v8.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "isolate/errors.h"
#include "link/wire.h"
#include "storage/database.h"
#include "storage/descriptors.h"

namespace engine::storage {

// A promise of storage.sync() and the commit it waits for.
struct Waiting {
  uint64_t sequence;
  uint32_t call;  // its serial
  v8::Global<v8::Promise::Resolver> resolver;
};

// What the end of an entry has shown.
struct Entry {
  std::vector<uint32_t> settled;  // slots with a sync() that has nothing to wait for: Stored() must be called for them
  std::vector<uint32_t> broken;   // slots whose database is closed, because their transaction could not be committed
};

class Storage final {
 public:
  // All databases together may take half of the worker's memory.
  Storage(v8::Isolate* isolate, uint32_t worker, size_t memory_bytes, Descriptors& descriptors,
          std::function<bool()> must_stop);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  // --- Frames of Python; all inside the worker's turn ---

  // Opens a database, or writes a RESET frame that says why not. False if the frame is malformed.
  bool Open(uint32_t slot, std::string_view payload, wire::Writer& frames);
  // The serials of calls that waited for a sync().
  std::vector<uint32_t> Close(uint32_t slot);
  // Returns the promises to resolve now.
  std::vector<Waiting> Stored(uint32_t slot, std::string_view payload);

  // --- For natives ---

  // Null if no database is open there. The end of the entry looks at those that were asked for.
  Database* Find(uint32_t slot);
  Account& account() { return account_; }
  // A promise for the moment when everything done so far is durable; empty if it is so already.
  v8::MaybeLocal<v8::Promise> Sync(uint32_t slot, uint32_t call);

  // Whether a commit of the slot is not durable, or is about to be made; also if no database is open there.
  bool HasPending(uint32_t slot) const;

  // --- The end of an entry ---

  // Commits every open transaction. Its frames are put at `start`, before all frames that the entry has written.
  Entry EndEntry(wire::Writer& frames, size_t start);
  // The object of a slot cannot go on: closes its database, and puts RESET at `start`.
  void Reset(uint32_t slot, const Failure& failure, wire::Writer& frames, size_t start);

 private:
  struct Slot {
    std::unique_ptr<Database> database;
    uint64_t durable = 0;
    std::vector<Waiting> waiting;
    bool is_touched = false;
  };

  // Tells V8 how much memory the databases take.
  void Report();

  v8::Isolate* const isolate_;
  const uint32_t worker_;
  Account account_;
  Descriptors& descriptors_;
  const std::function<bool()> must_stop_;
  std::unordered_map<uint32_t, Slot> slots_;
  std::vector<uint32_t> touched_;  // slots that the entry under way has used
  size_t reported_ = 0;
};

}  // namespace engine::storage
