#include "worker/routes.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace engine {
namespace {

constexpr size_t kMaxMethod = 256;
constexpr size_t kMaxRoutes = 6000;  // Python opens fewer

bool IsNamePart(char each) { return std::isalnum(static_cast<unsigned char>(each)) != 0 || each == '_' || each == '$'; }

bool StartsWith(std::string_view text, std::string_view lower) {
  return text.size() >= lower.size() && std::equal(lower.begin(), lower.end(), text.begin(), [](char want, char has) {
           return want == std::tolower(static_cast<unsigned char>(has));
         });
}

}  // namespace

bool Door::Pass(const std::function<bool()>& post) {
  std::lock_guard<std::mutex> lock(mutex_);
  return is_open_.load(std::memory_order_relaxed) && post();
}

void Door::Shut() {
  std::lock_guard<std::mutex> lock(mutex_);
  is_open_.store(false, std::memory_order_release);
}

std::shared_ptr<Door> Doors::Open(uint32_t slot) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<Door>& door = open_[slot];
  if (door == nullptr) door = std::make_shared<Door>(slot);
  return door;
}

void Doors::Shut(uint32_t slot) {
  std::shared_ptr<Door> door;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = open_.find(slot);
    if (found == open_.end()) return;
    door = std::move(found->second);
    open_.erase(found);
  }
  door->Shut();
}

void Doors::ShutAll() {
  std::unordered_map<uint32_t, std::shared_ptr<Door>> doors;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    doors.swap(open_);
  }
  for (const auto& [slot, door] : doors) door->Shut();
}

bool Routes::Set(std::string_view payload, const OpenDoor& open) {
  wire::Reader reader(payload);
  auto route = std::make_shared<Route>();
  route->number = reader.U32();
  route->callee = reader.U32();
  route->slot = reader.U32();
  route->room = reader.U32();
  route->budget = reader.U32();
  route->is_named = reader.U32() != 0;
  const std::string name(reader.Bytes(reader.U32()));
  route->entry = reader.Bytes(reader.U32());
  route->address = reader.Bytes(reader.U32());
  route->zone = reader.Rest();
  if (!reader.ok() || (route->callee != 0 && route->address.empty())) return false;
  if (route->callee != 0 && route->slot != 0) {
    route->door = open(route->callee, route->slot);
    if (route->door == nullptr) return true;  // its worker has ended, and Python is about to hear of it
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (route->callee == 0) {
    routes_.erase(name);
  } else if (routes_.size() < kMaxRoutes || routes_.contains(name)) {
    routes_[name] = std::move(route);
  }
  has_any_.store(!routes_.empty(), std::memory_order_relaxed);
  return true;
}

std::shared_ptr<const Route> Routes::Find(std::string_view name) {
  if (!has_any_.load(std::memory_order_relaxed)) return nullptr;
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = routes_.find(std::string(name));
  return found == routes_.end() ? nullptr : found->second;
}

std::optional<InnerPayload> MakeInnerPayload(const InnerRequest& request, const Route& route, uint8_t hops) {
  std::string head;
  wire::Event event = wire::Event::kRpc;
  if (request.is_method) {
    const std::string_view method = request.first;
    if (method.empty() || method.size() > kMaxMethod || !std::all_of(method.begin(), method.end(), IsNamePart)) {
      return std::nullopt;
    }
    head.append("RPC ").append(route.entry).append(".").append(method).append("\n");
    head.append(route.address, 0, route.address.size() - 1);  // without the brace
    head.append(", \"method\": \"").append(method).append("\"}");
  } else {
    if (request.first.find('\n') != std::string_view::npos) return std::nullopt;
    event = route.is_named ? wire::Event::kEntrypoint : wire::Event::kFetch;
    head.append(request.first).append("\n");
    if (route.is_named) head.append(route.address).append("\n");
    head.append(request.lines).append("cf-worker: ").append(route.zone).append("\r\n");
    if (!request.body.empty()) head.append("content-length: " + std::to_string(request.body.size()) + "\r\n");
  }
  if (head.size() > wire::kInnerHead || request.body.size() > wire::kInnerBody) return std::nullopt;
  InnerPayload payload{event, head.size(), {}};
  payload.bytes.reserve(InnerPayload::kHeadAt + head.size() + request.body.size());
  const std::array<char, 4> first = {static_cast<char>(event), static_cast<char>(hops), 0, 0};
  const uint32_t length = static_cast<uint32_t>(head.size());
  payload.bytes.append(first.data(), first.size());
  payload.bytes.append(reinterpret_cast<const char*>(&length), sizeof(length));
  payload.bytes.append(head).append(request.body);
  return payload;
}

bool IsSpecialHead(std::string_view head) {
  while (!head.empty()) {
    if (StartsWith(head, "content-encoding:") || StartsWith(head, "upgrade:") ||
        StartsWith(head, "proxy-authenticate:")) {
      return true;
    }
    const size_t end = head.find('\n');
    if (end == std::string_view::npos) return false;
    head.remove_prefix(end + 1);
  }
  return false;
}

}  // namespace engine
