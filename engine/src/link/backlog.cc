#include "link/backlog.h"

#include <cstring>
#include <utility>

#include "link/wire.h"

namespace engine {
namespace {

// Shorter pieces are copied, so that the outbox of a worker keeps its memory.
constexpr size_t kLong = 16 * 1024;

wire::Header HeaderAt(std::string_view bytes, size_t at) {
  wire::Header header;
  std::memcpy(&header, bytes.data() + at, sizeof(header));
  return header;
}

size_t FrameEnd(std::string_view bytes, size_t at) { return at + sizeof(wire::Header) + HeaderAt(bytes, at).length; }

}  // namespace

void Backlog::FinishFrame(Piece& piece) {
  size_t whole = 0;
  while (whole < piece.sent) whole = FrameEnd(piece.bytes, whole);
  if (whole == piece.sent) return;
  current_ = &piece;
  end_ = whole;
}

void Backlog::AddFirst(std::string_view frames, size_t sent) {
  first_.bytes.append(frames);
  if (sent == 0) return;
  first_.sent = sent;
  FinishFrame(first_);
}

void Backlog::Add(std::string& frames, size_t sent) {
  auto [found, is_new] = queues_.try_emplace(HeaderAt(frames, 0).worker);
  std::deque<Piece>& queue = found->second;
  if (is_new) turns_.push_back(found->first);
  if (!is_new && queue.back().bytes.size() + frames.size() <= kTurnBytes) {
    queue.back().bytes.append(frames);
    return;
  }
  Piece& piece = queue.emplace_back();
  piece.sent = sent;
  if (frames.size() >= kLong && frames.capacity() <= 2 * frames.size()) {
    piece.bytes.swap(frames);
  } else {
    piece.bytes.assign(frames);
  }
  if (sent > 0) FinishFrame(piece);
}

std::string_view Backlog::Next() {
  if (current_ == nullptr) {
    if (!first_.bytes.empty()) {
      current_ = &first_;
      end_ = first_.bytes.size();
    } else if (!turns_.empty()) {
      current_ = &queues_.find(turns_.front())->second.front();
      const std::string_view bytes = current_->bytes;
      end_ = FrameEnd(bytes, current_->sent);
      while (end_ < bytes.size() && FrameEnd(bytes, end_) - current_->sent <= kTurnBytes) end_ = FrameEnd(bytes, end_);
    } else {
      return {};
    }
  }
  return std::string_view(current_->bytes).substr(current_->sent, end_ - current_->sent);
}

void Backlog::Sent(size_t count) {
  current_->sent += count;
  if (current_->sent < end_) return;
  const Piece* piece = std::exchange(current_, nullptr);
  if (piece == &first_) {
    first_.bytes.erase(0, std::exchange(first_.sent, 0));  // more may have been added meanwhile
    return;
  }
  const uint32_t worker = turns_.front();
  turns_.pop_front();
  auto found = queues_.find(worker);
  if (piece->sent == piece->bytes.size()) found->second.pop_front();
  if (found->second.empty()) {
    queues_.erase(found);
  } else {
    turns_.push_back(worker);
  }
}

}  // namespace engine
