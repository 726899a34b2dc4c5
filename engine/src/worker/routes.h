// Calls between two isolates of this engine: where the service bindings of a worker lead, as Python has said, and what
// belongs to one call that went that way.
//
// Python decides who may call whom, and hears of every call (link/announcements.h). Whatever is out of the ordinary
// takes the way over Python: there is no route, the callee is busy or gone, the chain of calls is too long, a budget is
// used up, the call is large, or the caller is an object with commits that are not durable yet. So there is one place
// for refusals and their texts.
//
// A route to an object goes through its door. Python opens the door with the first route to the object, and has it shut
// before the object may live anywhere else: calls begin behind an open door only.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "link/wire.h"

namespace engine {

class Worker;

// How many calls from inside the engine a worker or an object has, from mailbox to end.
using InnerCount = std::shared_ptr<std::atomic<uint32_t>>;

// Where calls from inside the engine enter an object.
class Door final {
 public:
  explicit Door(uint32_t slot) : slot_(slot) {}
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  uint32_t slot() const { return slot_; }
  const InnerCount& count() const { return count_; }
  bool is_open() const { return is_open_.load(std::memory_order_acquire); }
  // False if the door is shut, or `post` returns false. It is not shut while `post` runs.
  bool Pass(const std::function<bool()>& post);
  void Shut();

 private:
  const uint32_t slot_;
  const InnerCount count_ = std::make_shared<std::atomic<uint32_t>>(0);
  std::mutex mutex_;
  std::atomic<bool> is_open_{true};
};

// The open doors of one worker. The thread that reads the socket opens and shuts them at once, as it changes routes.
class Doors final {
 public:
  std::shared_ptr<Door> Open(uint32_t slot);
  void Shut(uint32_t slot);
  void ShutAll();

 private:
  std::mutex mutex_;
  std::unordered_map<uint32_t, std::shared_ptr<Door>> open_;
};

struct Route {
  uint32_t number = 0;
  uint32_t callee = 0;         // a load id
  uint32_t slot = 0;           // of the object there; 0: not to an object
  uint32_t room = 0;           // the most calls of this kind that the callee has at a time
  uint32_t budget = 0;         // the most ops and calls of one chain that still go this way
  bool is_named = false;       // a fetch names the entry point
  std::string entry;           // the entry point in logs
  std::string address;         // JSON of the entry point
  std::string zone;            // the value of the header cf-worker
  std::shared_ptr<Door> door;  // of the object
};

// The routes of one worker. The thread that reads the socket changes them at once, not in the worker's turn: after a
// deploy no call may go to the old version because the caller is busy.
class Routes final {
 public:
  // The payload of ROUTE. `open` gives the door of an object, or null if its worker is gone. False if it is malformed.
  using OpenDoor = std::function<std::shared_ptr<Door>(uint32_t callee, uint32_t slot)>;
  bool Set(std::string_view payload, const OpenDoor& open);
  std::shared_ptr<const Route> Find(std::string_view name);

 private:
  std::atomic<bool> has_any_{false};
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const Route>> routes_;
};

// What all calls share that one call led to.
struct Chain {
  std::atomic<uint32_t> used{0};           // ops and calls
  std::atomic<uint32_t> most{UINT32_MAX};  // the lowest budget of a worker in it
};

// Where a call came from, for its answer. It is counted as long as this exists.
class InnerOrigin final {
 public:
  InnerOrigin(std::weak_ptr<Worker> caller, uint32_t op, std::shared_ptr<Chain> chain, InnerCount count,
              std::shared_ptr<Door> door)
      : caller_(std::move(caller)),
        op_(op),
        chain_(std::move(chain)),
        count_(std::move(count)),
        door_(std::move(door)) {
    count_->fetch_add(1, std::memory_order_relaxed);
    if (door_ != nullptr) door_->count()->fetch_add(1, std::memory_order_relaxed);
  }
  ~InnerOrigin() {
    count_->fetch_sub(1, std::memory_order_relaxed);
    if (door_ != nullptr) door_->count()->fetch_sub(1, std::memory_order_relaxed);
  }
  InnerOrigin(const InnerOrigin&) = delete;
  InnerOrigin& operator=(const InnerOrigin&) = delete;

  const std::weak_ptr<Worker>& caller() const { return caller_; }
  uint32_t op() const { return op_; }
  const std::shared_ptr<Chain>& chain() const { return chain_; }
  // Of the object that is called, or null.
  const std::shared_ptr<Door>& door() const { return door_; }

 private:
  const std::weak_ptr<Worker> caller_;
  const uint32_t op_;
  const std::shared_ptr<Chain> chain_;
  const InnerCount count_;
  const std::shared_ptr<Door> door_;
};

// What JavaScript asks for: a method, or a request.
struct InnerRequest {
  uint32_t op;            // the op that does the same over Python,
  std::string_view meta;  // and its meta
  std::string_view binding;
  bool is_method;
  std::string_view first;  // the name of the method, or METHOD SP URL
  std::string_view lines;  // the header lines of a request
  std::string_view body;
  uint32_t slot;  // of the object that calls, or 0
};

// The payload of CALL for a request.
struct InnerPayload {
  wire::Event event;
  size_t head_size;
  std::string bytes;

  static constexpr size_t kHeadAt = 8;
  std::string_view head() const { return std::string_view(bytes).substr(kHeadAt, head_size); }
};

// Nothing if the request is not plain, or too large.
std::optional<InnerPayload> MakeInnerPayload(const InnerRequest& request, const Route& route, uint8_t hops);

// True if Python must see the head of a response: it decodes bodies, and drops headers of connections.
bool IsSpecialHead(std::string_view head);

}  // namespace engine
