// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "api/text.h"
#include "cli/interrupt.h"
#include "cli/options.h"

namespace juno::cli {
namespace {

constexpr int64_t kWindow = 512;

struct PerplexityOptions {
  ModelOptions model;
  std::string file;
  int64_t window = kWindow, tokens = 0;
  bool json = false;
};

int perplexity(PerplexityOptions o) {
  const std::string text = read_text(o.file);
  if (text.empty()) fail(Code::kBadData, "[cli] {} is empty", o.file == "-" ? "stdin" : o.file);
  // JUNO_CONTEXT=0 asks other commands for the model's own, here for the usual window.
  if (o.window == 0) o.window = kWindow;
  if (o.model.session.context < o.window) o.model.session.context = o.window;
  const auto session = open_session(o.model, stderr_log(false));
  std::vector<int32_t> ids = open_text(o.model.model_path).encode(text, /*special=*/false, /*bos=*/false);
  if (o.tokens > 0 && static_cast<int64_t>(ids.size()) > o.tokens) ids.resize(static_cast<size_t>(o.tokens));
  const Interruptible scope(*session);
  const api::Perplexity p = take(session->perplexity(ids, o.window));
  const api::Stats s = session->total();
  if (o.json) {
    const nlohmann::ordered_json json = {{"tokens", p.tokens},          {"scored", p.scored},
                                         {"window", o.window},          {"mean_nll", p.mean_nll},
                                         {"perplexity", p.perplexity},  {"window_nll", p.window_nll},
                                         {"seconds", s.prefill_seconds}};
    print(json.dump() + "\n");
  } else {
    print(fmt::format("perplexity {:.4f} (mean NLL {:.6f} nats over {} of {} tokens, windows of {})\n",
                      p.perplexity, p.mean_nll, p.scored, p.tokens, o.window));
  }
  return 0;
}

}  // namespace

Run add_perplexity(CLI::App& app) {
  auto o = std::make_shared<PerplexityOptions>();
  add_model_options(app, o->model);
  CLI::Option* context = app.get_option("--context");
  app.remove_option(context);
  app.add_option("--file,-f", o->file, "Text to score (- for stdin)")->required();
  app.add_option("--context", o->window,
                 "Tokens of a window; each starts afresh, its first token is not scored; 0: 512")
      ->transform(in_range(int64_t{0}, int64_t{1} << 30));
  app.add_option("--tokens", o->tokens, "Use only the first N tokens; 0: all")
      ->transform(in_range(int64_t{0}, int64_t{1} << 40));
  app.add_flag("--json", o->json, "Print JSON");
  return [o] { return perplexity(*o); };
}

}  // namespace juno::cli
