// Networks that do not encrypt, where tcp.encryption is on: who asks for that does not expect messages to go in plain text over
// another network, so such a network must be named to be used. What never leaves the host is not meant.
//
// Threads and lifetime: a constant.
#pragma once

#include <string_view>

namespace railmux::transports {

inline constexpr std::string_view plain_text_doubt = "off by default: it does not encrypt, and tcp.encryption is on";

}  // namespace railmux::transports
