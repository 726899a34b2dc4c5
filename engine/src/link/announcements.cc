#include "link/announcements.h"

#include <algorithm>
#include <cstring>

#include "base/clock.h"

namespace engine {
namespace {

// Where the figures are in a frame: after the header, route, caller, its call, op id and op.
constexpr size_t kFiguresAt = sizeof(wire::Header) + 4 * 4 + 2;

template <typename T>
void PutAt(std::string& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
}

}  // namespace

void Announcements::Add(const Announcement& call) {
  std::lock_guard<std::mutex> lock(mutex_);
  open_[call.call] = {frames_.bytes().size(), MonotonicNs()};
  frames_.Begin(wire::Frame::kInner, 0, call.worker, call.call);
  frames_.U32(call.route);
  frames_.U32(call.caller);
  frames_.U32(call.callers_call);
  frames_.U32(call.op_id);
  frames_.U16(call.op);
  frames_.U16(0);                                                              // status
  frames_.U32(0);                                                              // CPU time
  frames_.U32(0);                                                              // wall time
  frames_.U16(0);                                                              // memory
  frames_.U16(static_cast<uint16_t>(static_cast<uint16_t>(call.event) << 8));  // outcome and event
  frames_.U32(static_cast<uint32_t>(call.meta.size()));
  frames_.Bytes(call.meta);
  frames_.Bytes(call.head);
  frames_.End();
  size_.store(frames_.bytes().size(), std::memory_order_relaxed);
}

bool Announcements::Finish(uint32_t call, const Figures& figures) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = open_.find(call);
  if (found == open_.end()) return false;
  std::string& bytes = frames_.bytes();
  const size_t at = found->second.at;
  const uint64_t wall_us = (MonotonicNs() - found->second.since_ns) / 1000;
  PutAt<uint8_t>(bytes, at + offsetof(wire::Header, flags), wire::kFlagDone);
  PutAt<uint16_t>(bytes, at + kFiguresAt, figures.status);
  PutAt<uint32_t>(bytes, at + kFiguresAt + 2, figures.cpu_us);
  PutAt<uint32_t>(bytes, at + kFiguresAt + 6, static_cast<uint32_t>(std::min<uint64_t>(wall_us, UINT32_MAX)));
  PutAt<uint16_t>(bytes, at + kFiguresAt + 10, figures.memory_mb);
  PutAt<uint8_t>(bytes, at + kFiguresAt + 12, static_cast<uint8_t>(figures.outcome));
  open_.erase(found);
  return true;
}

void Announcements::TakeTo(std::string& bytes) {
  if (empty()) return;
  std::lock_guard<std::mutex> lock(mutex_);
  bytes.swap(frames_.bytes());
  open_.clear();
  size_.store(0, std::memory_order_relaxed);
}

}  // namespace engine
