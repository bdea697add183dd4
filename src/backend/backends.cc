// SPDX-License-Identifier: Apache-2.0
#include "backend/backends.h"

#include <charconv>

#include "backend/cpu/cpu_ops.h"
#include "backend/gpu/open.h"
#include "base/cpu_limits.h"
#include "ops/reference.h"

namespace juno {
namespace {

using Opened = Result<std::unique_ptr<ops::Executor>>;

Opened open_cpu_backend(const BackendOptions& options) {
  Opened opened =
      cpu::open_cpu({options.threads, options.isa, options.activations, options.pool, options.turn_weights});
  if (!opened) return opened;
  const std::string why = options.pool || options.threads > 0 ? "as asked" : cpu_limits().text();
  options.log.info("[backend] cpu, {}, {} threads: {}", (*opened)->isa(), (*opened)->threads(), why);
  return opened;
}

Opened open_reference(const BackendOptions& options) {
  return std::make_unique<ops::Reference>(options.activations);
}

Opened open_cuda(const BackendOptions& options) {
  return gpu::open_cuda(options.device, options.activations);
}

Opened open_gpu_host(const BackendOptions& options) { return gpu::open_host(options.activations); }

constexpr Backend kBackends[] = {
    {"cpu", false, open_cpu_backend, nullptr},
    {"reference", false, open_reference, nullptr},
    {"cuda", true, open_cuda, gpu::cuda_kernels_sha256},
    {"gpu-host", false, open_gpu_host, nullptr},
    {"rocm", true, nullptr, nullptr},
};

// The number behind the colon of "cuda:1"; -1 when it is none.
int device_of(std::string_view digits) {
  int device = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), device);
  return error == std::errc() && end == digits.data() + digits.size() ? device : -1;
}

}  // namespace

std::span<const Backend> backends() { return kBackends; }

Opened open_backend(std::string_view name, const BackendOptions& asked) {
  BackendOptions options = asked;
  if (const size_t colon = name.find(':'); colon != name.npos) {
    options.device = device_of(name.substr(colon + 1));
    if (options.device < 0)
      return tl::unexpected(Error(
          Code::kUsage, fmt::format("[backend] {}: what follows the colon is the number of a device", name)));
    name = name.substr(0, colon);
  }
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
