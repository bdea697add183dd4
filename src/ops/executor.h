// SPDX-License-Identifier: Apache-2.0
// What all backends share of Ops: the shape of each result, its place in the arena, the count of what ran. A
// backend derives from it and fills in the do_… kernels, which write into outputs that exist already.
#pragma once
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/recorder.h"
#include "ops/ops.h"

namespace juno {
class ThreadPool;
}

namespace juno::ops {

enum class Activations : uint8_t { kInt8, kInt8x2 };  // profiles of docs/numerics.md §2

// What the recorder counts.
enum class Verb : uint8_t {
  kEmbed,
  kLinear,
  kNorm,
  kRope,
  kAttention,
  kGated,
  kAdd,
  kScale,
  kSoftcap,
  kRows,
  kRoute,
  kExperts,
  kEndLayer,
  kCount
};

// What the launches of one kernel that are alike took in a pass, one after another.
struct KernelTime {
  std::string_view kernel;
  std::array<uint32_t, 3> grid{};  // blocks
  uint32_t threads = 0;            // of a block
  int launches = 0;
  double seconds_each = 0, seconds = 0;  // the median, together
  uint64_t bytes = 0;                    // of weights and cache that they read together; 0: not known
};

class Executor : public Ops {
 public:
  ~Executor() override;

  virtual std::string_view backend() const = 0;  // as in the list of backends: "cpu"
  virtual std::string_view isa() const = 0;      // the instruction set that runs: "avx2"
  virtual int threads() const { return 1; }
  // The threads of a backend whose results lie in host memory; between two passes they are the caller's, and
  // each may read() from the device.
  virtual ThreadPool* pool() { return nullptr; }
  Activations activations() const { return activations_; }
  Device& device() final { return *device_; }
  Recorder& recorder() { return recorder_; }
  Snapshot snapshot() const;  // of the recorder and the device

  // Runs `forward` on `largest` with the kernels switched off, finds out what memory it asks for, and
  // reserves exactly that: later passes of at most as many tokens and outputs allocate nothing, larger ones
  // fail with Code::kFailed. Only the shapes of `largest` count, nothing in it is read. Fails with
  // Code::kDevice where memory is short.
  Result<void> plan(const Batch& largest, const std::function<void(const Batch&)>& forward);
  // What plan() would reserve; takes and changes nothing.
  Result<size_t> measure(const Batch& largest, const std::function<void(const Batch&)>& forward);
  size_t planned_bytes() const { return arena_.capacity(); }

  // A pass whose x comes from another executor takes it up with enter(). It lies at entrance(), where whoever
  // conducts has written it before the pass.
  Tensor enter(int64_t rows, int64_t cols);
  Tensor entrance(int64_t rows, int64_t cols) const {
    return {memory_, DType::kF32, {.rows = rows, .cols = cols}};
  }

  // While on, end_layer() looks for values that are not finite; bad_layer() is the first layer of the current
  // pass that handed one on. It costs a read of x a layer, so it is switched on to explain a NaN in the
  // logits.
  void check_layers(bool on) { checking_ = on; }
  std::optional<int> bad_layer() const { return bad_layer_; }

  // One forward pass: `forward` calls begin(batch), then verbs. A backend that has seen a batch of this shape
  // may run what it noted then instead of asking again: `forward` depends on nothing else.
  virtual Tensor run(const Batch& /*batch*/, const std::function<Tensor()>& forward) { return forward(); }

  // How many of a row's logits Batch::top may ask for; 0: this is left to who reads them.
  virtual int most_top() const { return 0; }
  // What the batch of the last run() asked for, row after row: the greatest logits first, among equals the
  // lowest id. The first id of a row that has a value which is not finite is -1.
  virtual void top_logits(std::span<TopLogit> /*to*/) {}

  // The seconds that the device alone takes for the last run(): the mean of `times` more of it, which change
  // nothing. 0: not known.
  virtual double device_seconds(int /*times*/) { return 0; }

  // What the last run()'s kernels take when each runs alone, the longest first: of each launch the median of
  // `times`. Empty: not known.
  virtual std::vector<KernelTime> kernel_times(int /*times*/) { return {}; }

  void begin(const Batch& batch) override;
  Tensor end_layer(int layer, const Tensor& x) override;
  Tensor embed(const Tensor& table, const Tensor& tokens) override;
  Tensor linear(const Tensor& x, const Linear& w) override;
  Tensor norm(const Tensor& x, const Norm& w) override;
  Tensor rope(const Tensor& x, const Rope& rope) override;
  Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Attention& how,
                   const KvView& kv) override;
  Tensor gated(Act act, const Tensor& gate, const Tensor& up) override;
  Tensor add(const Tensor& a, const Tensor& b) override;
  Tensor scale(const Tensor& x, float factor) override;
  Tensor softcap(const Tensor& x, float cap) override;
  Tensor rows(const Tensor& x, const Tensor& index) override;
  Routes route(const Tensor& logits, const Router& how) override;
  Tensor experts(const Tensor& x, const Experts& w, const Routes& routes) override;
  void linear_each(const Tensor& x, std::span<const Linear* const> w, std::span<Tensor> y) override;
  Tensor gated_linear(Act act, const Tensor& x, const Linear& gate, const Linear& up) override;
  Tensor add_linear(const Tensor& a, const Tensor& x, const Linear& w) override;

 protected:
  struct Attend {
    Tensor y, q, k, v;
    const Attention& how;
    const KvView& kv;
    int heads() const { return static_cast<int>(q.cols() / how.key_dim); }
    int kv_heads() const { return static_cast<int>(k.cols() / how.key_dim); }
  };

  // A composite: products of one x, and what follows them. `y` has one tensor for each of `w`, but one in all
  // where a gate and what it gates become one.
  struct Products {
    const Tensor& x;
    std::span<const Linear* const> w;
    std::span<const Tensor> y;
    const Act* gated = nullptr;    // y = act(x · w[0]) ∘ (x · w[1])
    const Tensor* plus = nullptr;  // y = plus + x · w[0]
  };
  static constexpr size_t kMostProducts = 4;  // of one x

  Executor(std::unique_ptr<Device> device, Activations activations);

  bool planning() const { return arena_.measuring(); }  // kernels are off, memory is not there
  bool checking() const { return checking_; }
  const void* arena_memory() const { return memory_; }

  // Temporary memory of a kernel, reserved around its call; it must not shrink when there are more tokens.
  virtual size_t linear_scratch(const Tensor& /*x*/, const Linear& /*w*/) const { return 0; }
  virtual size_t products_scratch(const Products& /*p*/) const { return 0; }
  virtual size_t attention_scratch(const Attend& /*a*/) const { return 0; }
  virtual size_t experts_scratch(const Tensor& /*x*/, const Experts& /*w*/, int /*top_k*/) const { return 0; }

  virtual void do_embed(const Tensor& y, const Tensor& table, const Tensor& tokens) = 0;
  virtual void do_linear(const Tensor& y, const Tensor& x, const Linear& w, std::byte* scratch) = 0;
  // Composites are taken apart into plain verbs unless a backend fuses them.
  virtual bool fuses() const { return false; }
  virtual void do_products(const Products& /*p*/, std::byte* /*scratch*/) {}
  virtual void do_norm(const Tensor& y, const Tensor& x, const Norm& w) = 0;
  // table [tokens, 2*pairs]: the cosines of a position's pairs, then the sines (ops/rope_table.h).
  virtual void do_rope_table(const Tensor& table, const Rope& rope, const Tensor& positions) = 0;
  virtual void do_rope(const Tensor& y, const Tensor& x, const Rope& rope, const Tensor& table) = 0;
  virtual void do_attention(const Attend& a, std::byte* scratch) = 0;
  virtual void do_gated(const Tensor& y, Act act, const Tensor& gate, const Tensor& up) = 0;
  virtual void do_add(const Tensor& y, const Tensor& a, const Tensor& b) = 0;
  virtual void do_scale(const Tensor& y, const Tensor& x, float factor) = 0;
  virtual void do_softcap(const Tensor& y, const Tensor& x, float cap) = 0;
  virtual void do_rows(const Tensor& y, const Tensor& x, const Tensor& index) = 0;
  virtual void do_route(const Routes& y, const Tensor& logits, const Router& how) = 0;
  // Returns the number of experts whose weights were read.
  virtual int do_experts(const Tensor& y, const Tensor& x, const Experts& w, const Routes& routes,
                         std::byte* scratch) = 0;
  virtual void do_copy(const Tensor& y, const Tensor& x) = 0;
  virtual bool do_finite(const Tensor& x) = 0;

 private:
  struct RopeTable {
    const Rope* rope;
    Tensor table;
  };

  Tensor make(int64_t rows, int64_t cols, DType dtype = DType::kF32);
  void launch_products(const Products& p);
  Tensor rope_table(const Rope& rope);
  template <class Kernel>
  void launch(Verb verb, size_t scratch, Kernel&& kernel);
  void count(Verb verb, uint64_t weight_bytes, std::initializer_list<Tensor> moved);
  void release();

  std::unique_ptr<Device> device_;
  const Activations activations_;
  Recorder recorder_;
  Arena arena_;
  void* memory_ = nullptr;
  Batch batch_;                         // of the current pass
  std::vector<RopeTable> rope_tables_;  // of the current pass, one for each distinct Rope
  bool checking_ = false;
  std::optional<int> bad_layer_;
};

}  // namespace juno::ops
