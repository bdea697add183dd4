// SPDX-License-Identifier: Apache-2.0
#include "backend/backends.h"

#include "backend/cpu/cpu_ops.h"
#include "base/cpu_limits.h"
#include "ops/reference.h"

namespace juno {
namespace {

using Opened = Result<std::unique_ptr<ops::Executor>>;

Opened open_cpu_backend(const BackendOptions& options) {
  Opened opened = cpu::open_cpu({options.threads, options.isa, options.activations, options.pool});
  if (!opened) return opened;
  const std::string why = options.pool || options.threads > 0 ? "as asked" : cpu_limits().text();
  options.log.info("[backend] cpu, {}, {} threads: {}", (*opened)->isa(), (*opened)->threads(), why);
  return opened;
}

Opened open_reference(const BackendOptions& options) {
  return std::make_unique<ops::Reference>(options.activations);
}

constexpr Backend kBackends[] = {
    {"cpu", open_cpu_backend},
    {"reference", open_reference},
    {"cuda", nullptr},
    {"rocm", nullptr},
};

}  // namespace

std::span<const Backend> backends() { return kBackends; }

Opened open_backend(std::string_view name, const BackendOptions& options) {
  std::string known;
  for (const Backend& backend : kBackends) {
    if (backend.name == name) {
      if (backend.open) return backend.open(options);
      return tl::unexpected(
          Error(Code::kDevice, fmt::format("[backend] {} is not built into this program", name)));
    }
    if (backend.open) known += (known.empty() ? "" : ", ") + std::string(backend.name);
  }
  return tl::unexpected(
      Error(Code::kUsage, fmt::format("[backend] unknown backend '{}'; known are {}", name, known)));
}

}  // namespace juno
