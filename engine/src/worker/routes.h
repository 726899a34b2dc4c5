// Calls between two isolates of this engine: where the service bindings of a worker lead, as Python has said, and what
// belongs to one call that went that way.
//
// Python decides who may call whom, and hears of every call (link/announcements.h). Whatever is out of the ordinary
// takes the way over Python: there is no route, the callee is busy or gone, the chain of calls is too long, a budget is
// used up, or the call is large. So there is one place for refusals and their texts.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "link/wire.h"

namespace engine {

class Worker;

struct Route {
  uint32_t number = 0;
  uint32_t callee = 0;    // a load id
  uint32_t room = 0;      // the most calls of this kind that the callee has at a time
  uint32_t budget = 0;    // the most ops and calls of one chain that still go this way
  bool is_named = false;  // a fetch names the entry point
  std::string entry;      // the entry point in logs
  std::string address;    // JSON of the entry point
  std::string zone;       // the value of the header cf-worker
};

// The routes of one worker. The thread that reads the socket changes them at once, not in the worker's turn: after a
// deploy no call may go to the old version because the caller is busy.
class Routes final {
 public:
  // The payload of ROUTE. False if it is malformed.
  bool Set(std::string_view payload);
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

// How many calls from inside the engine a worker has, from mailbox to end.
using InnerCount = std::shared_ptr<std::atomic<uint32_t>>;

// Where a call came from, for its answer. It is counted as long as this exists.
class InnerOrigin final {
 public:
  InnerOrigin(std::weak_ptr<Worker> caller, uint32_t op, std::shared_ptr<Chain> chain, InnerCount count)
      : caller_(std::move(caller)), op_(op), chain_(std::move(chain)), count_(std::move(count)) {
    count_->fetch_add(1, std::memory_order_relaxed);
  }
  ~InnerOrigin() { count_->fetch_sub(1, std::memory_order_relaxed); }
  InnerOrigin(const InnerOrigin&) = delete;
  InnerOrigin& operator=(const InnerOrigin&) = delete;

  const std::weak_ptr<Worker>& caller() const { return caller_; }
  uint32_t op() const { return op_; }
  const std::shared_ptr<Chain>& chain() const { return chain_; }

 private:
  const std::weak_ptr<Worker> caller_;
  const uint32_t op_;
  const std::shared_ptr<Chain> chain_;
  const InnerCount count_;
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
