// The pages of one database, below SQLite.
//
// A page is looked for in the running transaction, then among committed pages that Python has not put into the file
// yet, then in the file, which is open for reading only. The end of a transaction turns what it has written into a
// COMMIT frame. What SQLite writes early, because a transaction outgrows its cache, is part of the same commit: nothing
// of a transaction is sent before its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "link/wire.gen.h"
#include "storage/sqlite_library.h"

namespace engine::storage {

constexpr size_t kPage = wire::kPage;

// What a commit does to the alarm of its object.
struct AlarmChange {
  uint8_t kind = 0;  // as in the frame COMMIT
  int64_t at_ms = -1;
};

class PageStore final {
 public:
  // Takes the descriptor, which may be -1 if there is no file.
  PageStore(Account& account, int fd, uint32_t pages, uint64_t sequence);
  ~PageStore();
  PageStore(const PageStore&) = delete;
  PageStore& operator=(const PageStore&) = delete;

  // --- For SQLite ---

  // The number of pages, as the running transaction sees it.
  uint32_t pages() const { return pages_; }
  // Page numbers begin with 1. A page that was never written is all zeros. False if the file cannot be read.
  bool Read(uint32_t number, char* into) const;
  // False if the transaction is too large, or memory is short.
  bool Write(uint32_t number, const char* content);
  void Resize(uint32_t pages);

  // --- Transactions ---

  // True if a commit would have content.
  bool IsChanged() const { return !written_.empty() || pages_ != committed_pages_ || erased_; }
  // Removes every page.
  void Erase();
  bool is_erased() const { return erased_; }
  void Rollback();
  // Appends the payload of a COMMIT frame, and begins the next transaction.
  void Commit(AlarmChange alarm, std::string& payload);

  // The number of the last commit.
  uint64_t sequence() const { return sequence_; }
  // Pages of commits up to this number are in the file.
  void Merged(uint64_t sequence);

 private:
  using Content = std::unique_ptr<char[]>;
  struct Committed {
    Content content;
    uint64_t sequence;
  };

  bool ReadFile(uint32_t number, char* into) const;

  Account& account_;
  const int fd_;
  uint64_t sequence_;
  uint64_t merged_;
  uint64_t erased_at_ = 0;  // the commit that removed every page: older content of the file does not count
  uint32_t committed_pages_;
  std::unordered_map<uint32_t, Committed> committed_;

  // The running transaction.
  uint32_t pages_;
  bool erased_ = false;
  std::unordered_map<uint32_t, Content> written_;
};

}  // namespace engine::storage
