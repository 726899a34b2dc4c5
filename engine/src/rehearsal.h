// For benchmarks: what making a realm costs, without anything around it. No frame and no worker can lead to it.
#pragma once

#include <node.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace engine {

// Makes `count` realms from the content of a snapshot's file and gives medians of CPU time, as JSON: of a realm, of one
// whose memory was prepared, of its first calls (WarmUp), of another context in it, and of its end; and the page faults
// of the first two. Empty when the snapshot cannot be used.
std::string Rehearse(node::MultiIsolatePlatform* platform, std::string_view snapshot, uint32_t count);

}  // namespace engine
