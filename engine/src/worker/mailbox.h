// The messages a worker has not handled yet. Any thread posts; the thread that runs the worker's turn takes them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace engine {

class InnerOrigin;

struct Mail {
  enum class Kind : uint8_t {
    kLoad,
    kUnload,
    kCall,
    kBody,
    kCredit,
    kCancel,
    kReply,
    kCode,
    kAlarm,
    kPump,
    kFinished,
    kTrim,
    kOpen,
    kClose,
    kStored,
    kSockets
  };
  Kind kind;
  uint8_t flags = 0;
  uint32_t id = 0;  // of the call, the op, the job or the slot
  std::string payload;
  std::shared_ptr<InnerOrigin> origin = nullptr;  // of a call from inside the engine

  bool BelongsToCall() const {
    return kind == Kind::kCall || kind == Kind::kBody || kind == Kind::kCredit || kind == Kind::kCancel;
  }
};

class Mailbox final {
 public:
  // `memory_bytes` is the worker's memory limit: unread replies may use as much again, and at least 64 MB.
  explicit Mailbox(size_t memory_bytes) : memory_bytes_(memory_bytes) {}
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // --- From any thread ---

  // kFirst: the worker had nothing to do and the caller must schedule it. kClosed: the worker is unloaded.
  enum class Posted { kClosed, kYes, kFirst };
  Posted Post(Mail mail);
  // Posts a call from inside the engine, unless the worker is about to be unloaded. `announce` is called before any
  // thread can take the call.
  Posted PostInner(Mail mail, const std::function<void()>& announce);
  // From now on PostInner() refuses.
  void RefuseInner();

  // --- From the thread that runs the worker's turn ---

  std::vector<Mail> TakeAll();
  // Puts the rest of a batch, from index `first` on, in front of mail that has arrived since.
  void PutBack(std::vector<Mail>& batch, size_t first);
  // Ends the turn. True when the worker needs another one: `again`, or mail has arrived.
  bool EndTurn(bool again);
  void Clear();
  // Refuses all later mail and returns the unread mail.
  std::vector<Mail> Close();
  // A reply was handled and its memory is free.
  void ReleaseReply(size_t bytes) { reply_bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  static constexpr size_t kMaxReplyBytes = size_t{64} << 20;
  static constexpr size_t kSmallReply = 4096;  // never dropped

  void MakeRoomFor(Mail& reply);

  const size_t memory_bytes_;
  std::mutex mutex_;
  std::vector<Mail> mail_;
  bool scheduled_ = false;
  bool closed_ = false;
  bool refuses_inner_ = false;
  std::atomic<size_t> reply_bytes_{0};  // of unread replies; V8 does not count them
};

// Removes calls that were canceled before they began, with all their mail, and returns their ids. A CANCEL counts only
// when it follows the CALL: an earlier one was meant for a previous call with that id.
std::vector<uint32_t> DropCanceled(std::vector<Mail>& unread);

}  // namespace engine
