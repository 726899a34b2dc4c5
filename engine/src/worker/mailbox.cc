#include "worker/mailbox.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>
#include <utility>

namespace engine {

Mailbox::Posted Mailbox::Post(Mail mail) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (closed_) return Posted::kClosed;
  if (mail.kind == Mail::Kind::kReply) MakeRoomFor(mail);
  mail_.push_back(std::move(mail));
  return std::exchange(scheduled_, true) ? Posted::kYes : Posted::kFirst;
}

Mailbox::Posted Mailbox::PostInner(Mail mail, const std::function<void()>& announce) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (closed_ || refuses_inner_) return Posted::kClosed;
  announce();
  mail_.push_back(std::move(mail));
  return std::exchange(scheduled_, true) ? Posted::kYes : Posted::kFirst;
}

void Mailbox::RefuseInner() {
  std::lock_guard<std::mutex> lock(mutex_);
  refuses_inner_ = true;
}

// Empties a reply that does not fit, so that a worker that reads no replies cannot fill the memory of the process. The
// op then fails in JavaScript.
void Mailbox::MakeRoomFor(Mail& reply) {
  size_t held = reply_bytes_.load(std::memory_order_relaxed) + reply.payload.size();
  if (reply.payload.size() > kSmallReply && held > std::max(memory_bytes_, kMaxReplyBytes)) {
    std::string().swap(reply.payload);
  }
  reply_bytes_.fetch_add(reply.payload.size(), std::memory_order_relaxed);
}

std::vector<Mail> Mailbox::TakeAll() {
  std::vector<Mail> batch;
  std::lock_guard<std::mutex> lock(mutex_);
  batch.swap(mail_);
  return batch;
}

void Mailbox::PutBack(std::vector<Mail>& batch, size_t first) {
  std::lock_guard<std::mutex> lock(mutex_);
  mail_.insert(mail_.begin(), std::make_move_iterator(batch.begin() + static_cast<ptrdiff_t>(first)),
               std::make_move_iterator(batch.end()));
}

bool Mailbox::EndTurn(bool again) {
  std::lock_guard<std::mutex> lock(mutex_);
  scheduled_ = again || !mail_.empty();
  return scheduled_;
}

void Mailbox::Clear() {
  std::lock_guard<std::mutex> lock(mutex_);
  mail_.clear();
}

std::vector<Mail> Mailbox::Close() {
  std::vector<Mail> unread;
  std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
  unread.swap(mail_);
  return unread;
}

std::vector<uint32_t> DropCanceled(std::vector<Mail>& unread) {
  const auto is_cancel = [](const Mail& mail) { return mail.kind == Mail::Kind::kCancel; };
  if (std::none_of(unread.begin(), unread.end(), is_cancel)) return {};
  std::unordered_set<uint32_t> canceled;
  std::vector<uint32_t> dropped;
  for (auto mail = unread.rbegin(); mail != unread.rend(); ++mail) {
    if (is_cancel(*mail)) {
      canceled.insert(mail->id);
    } else if (mail->kind == Mail::Kind::kCall && canceled.erase(mail->id) != 0) {
      dropped.push_back(mail->id);
    }
  }
  const std::unordered_set<uint32_t> gone(dropped.begin(), dropped.end());
  std::erase_if(unread, [&](const Mail& mail) { return mail.BelongsToCall() && gone.contains(mail.id); });
  return dropped;
}

}  // namespace engine
