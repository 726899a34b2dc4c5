#include "link/backlog.h"

#include <cstring>

#include "link/wire.h"

namespace engine {
namespace {

wire::Header HeaderAt(std::string_view bytes, size_t at) {
  wire::Header header;
  std::memcpy(&header, bytes.data() + at, sizeof(header));
  return header;
}

size_t FrameEnd(std::string_view bytes, size_t at) { return at + sizeof(wire::Header) + HeaderAt(bytes, at).length; }

}  // namespace

size_t Backlog::FinishFrame(std::string_view frames, size_t sent) {
  size_t whole = 0;  // the end of the frame that is partly sent
  while (whole < sent) whole = FrameEnd(frames, whole);
  if (whole > sent) {
    current_.assign(frames.substr(sent, whole - sent));
    current_sent_ = 0;
  }
  return whole;
}

void Backlog::AddFirst(std::string_view frames, size_t sent) {
  first_.append(frames.substr(FinishFrame(frames, sent)));
}

void Backlog::Add(std::string_view frames, size_t sent) {
  const size_t whole = FinishFrame(frames, sent);
  if (whole == frames.size()) return;
  const uint32_t worker = HeaderAt(frames, whole).worker;
  auto [found, is_new] = queues_.try_emplace(worker);
  if (is_new) turns_.push_back(worker);
  found->second.bytes.append(frames.substr(whole));
}

std::string_view Backlog::Next() {
  if (current_sent_ == current_.size()) {
    std::string().swap(current_);  // it may have held a large op
    current_sent_ = 0;
    if (!first_.empty()) {
      current_.swap(first_);
      return current_;
    }
    if (turns_.empty()) return {};
    const uint32_t worker = turns_.front();
    turns_.pop_front();
    auto found = queues_.find(worker);
    Take(found->second);
    if (found->second.bytes.empty()) {
      queues_.erase(found);
    } else {
      turns_.push_back(worker);
    }
  }
  return std::string_view(current_).substr(current_sent_);
}

void Backlog::Take(Queue& queue) {
  const std::string_view bytes = queue.bytes;
  size_t end = FrameEnd(bytes, queue.taken);
  while (end < bytes.size() && FrameEnd(bytes, end) - queue.taken <= kTurnBytes) end = FrameEnd(bytes, end);
  if (queue.taken == 0 && end == bytes.size()) {
    current_ = std::move(queue.bytes);
    queue.bytes.clear();
    return;
  }
  current_.assign(bytes.substr(queue.taken, end - queue.taken));
  queue.taken = end;
  if (queue.taken == queue.bytes.size()) {
    queue.bytes.clear();
  } else if (queue.taken > queue.bytes.size() / 2) {
    queue.bytes.erase(0, queue.taken);  // under load the queue may never become empty
    queue.taken = 0;
  }
}

}  // namespace engine
