#include "storage/page_store.h"

#include <errno.h>
#include <unistd.h>

#include <cstring>
#include <new>
#include <utility>
#include <vector>

namespace engine::storage {
namespace {

// What a page in memory takes, with its place in the table.
constexpr size_t kPageCost = kPage + 64;

template <typename Integer>
void Append(std::string& payload, Integer value) {
  payload.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace

PageStore::PageStore(Account& account, int fd, uint32_t pages, uint64_t sequence)
    : account_(account), fd_(fd), sequence_(sequence), merged_(sequence), committed_pages_(pages), pages_(pages) {}

PageStore::~PageStore() {
  account_.Give((written_.size() + committed_.size()) * kPageCost);
  if (fd_ >= 0) close(fd_);
}

bool PageStore::Read(uint32_t number, char* into) const {
  if (const auto found = written_.find(number); found != written_.end()) {
    std::memcpy(into, found->second.get(), kPage);
    return true;
  }
  if (erased_ || number > committed_pages_) {
    std::memset(into, 0, kPage);
    return true;
  }
  if (const auto found = committed_.find(number); found != committed_.end()) {
    std::memcpy(into, found->second.content.get(), kPage);
    return true;
  }
  return ReadFile(number, into);
}

bool PageStore::ReadFile(uint32_t number, char* into) const {
  size_t filled = 0;
  while (fd_ >= 0 && merged_ >= erased_at_ && filled < kPage) {
    const off_t at = static_cast<off_t>(number - 1) * static_cast<off_t>(kPage) + static_cast<off_t>(filled);
    const ssize_t count = pread(fd_, into + filled, kPage - filled, at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    if (count == 0) break;
    filled += static_cast<size_t>(count);
  }
  // A page that SQLite has added and never written, because it is free, may lie behind the end.
  std::memset(into + filled, 0, kPage - filled);
  return true;
}

bool PageStore::Write(uint32_t number, const char* content) {
  auto found = written_.find(number);
  if (found == written_.end()) {
    if (written_.size() >= wire::kCommitPages || !account_.Take(kPageCost)) return false;
    Content page(new (std::nothrow) char[kPage]);
    if (page == nullptr) {
      account_.Give(kPageCost);
      return false;
    }
    found = written_.emplace(number, std::move(page)).first;
  }
  std::memcpy(found->second.get(), content, kPage);
  if (number > pages_) pages_ = number;
  return true;
}

void PageStore::Resize(uint32_t pages) {
  if (pages < pages_) {
    account_.Give(std::erase_if(written_, [&](const auto& each) { return each.first > pages; }) * kPageCost);
  }
  pages_ = pages;
}

void PageStore::Erase() {
  account_.Give(written_.size() * kPageCost);
  written_.clear();
  pages_ = 0;
  erased_ = true;
}

void PageStore::Rollback() {
  account_.Give(written_.size() * kPageCost);
  written_.clear();
  pages_ = committed_pages_;
  erased_ = false;
}

void PageStore::Commit(AlarmChange alarm, std::string& payload) {
  sequence_++;
  const auto count = static_cast<uint32_t>(written_.size());
  payload.reserve(payload.size() + 32 + count * (kPage + 4));
  Append(payload, sequence_);
  Append(payload, pages_);
  Append(payload, count);
  Append(payload, static_cast<uint64_t>(alarm.kind));  // u8 alarm, u8[7] zero
  Append(payload, alarm.at_ms);
  for (const auto& [number, content] : written_) Append(payload, number);
  for (const auto& [number, content] : written_) payload.append(content.get(), kPage);

  if (erased_ || pages_ < committed_pages_) {
    const uint32_t kept = erased_ ? 0 : pages_;
    account_.Give(std::erase_if(committed_, [&](const auto& each) { return each.first > kept; }) * kPageCost);
  }
  if (erased_) erased_at_ = sequence_;
  for (auto& [number, content] : written_) {
    Committed& page = committed_[number];
    if (page.content != nullptr) account_.Give(kPageCost);
    page = {std::move(content), sequence_};
  }
  written_.clear();
  committed_pages_ = pages_;
  erased_ = false;
}

void PageStore::Merged(uint64_t sequence) {
  if (fd_ < 0 || sequence <= merged_ || sequence > sequence_) return;
  merged_ = sequence;
  account_.Give(std::erase_if(committed_, [&](const auto& each) { return each.second.sequence <= sequence; }) *
                kPageCost);
}

}  // namespace engine::storage
