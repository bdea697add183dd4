// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>

#include "api/doctor.h"
#include "cli/bus_error.h"
#include "cli/demo_model.h"

namespace juno::cli {
namespace {

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

CLI::Validator gpu_layers_check() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        if (text == "all" || text == "auto" || parse_number<uint16_t>(text)) return "";
        return fmt::format("\"{}\" is not a number of layers, all or auto", text);
      },
      "N|all|auto");
}

constexpr int64_t kMany = int64_t{1} << 40;

}  // namespace

template <class T>
CLI::Validator in_range(T least, T most) {
  const auto check = [=](std::string& text) -> std::string {
    const std::optional<T> value = parse_number<T>(text);
    if (!value || !(*value >= least && *value <= most))
      return fmt::format("\"{}\" is not a {} from {} to {}", text,
                         std::is_integral_v<T> ? "whole number" : "number", least, most);
    // The parser would take 010 for octal.
    if constexpr (std::is_integral_v<T>) text = fmt::to_string(*value);
    return "";
  };
  return CLI::Validator(check, fmt::format("{} to {}", least, most));
}
template CLI::Validator in_range(int64_t, int64_t);
template CLI::Validator in_range(uint64_t, uint64_t);
template CLI::Validator in_range(double, double);

void add_model_options(CLI::App& app, ModelOptions& o) {
  app.add_option("--model-path,-m", o.model_path,
                 "GGUF file; without it, the demo model inside this program");
  app.add_option("--context", o.session.context, "Positions to keep; 0: the model's own, at most 4096")
      ->transform(in_range(int64_t{0}, kMany));
  app.add_option("--threads,-t", o.session.threads, "CPU threads; 0: as many as this process may use")
      ->transform(in_range(int64_t{0}, int64_t{1024}));
  app.add_option("--activations", o.session.activations, "Profile of the numerics contract")
      ->check(CLI::IsMember({"int8", "int8x2"}));
  app.add_option("--isa", o.session.isa, "Instruction set of the kernels; without it, the best this CPU has")
      ->check(CLI::IsMember(api::instruction_sets()));
  app.add_option("--chunk", o.session.chunk,
                 "Prompt tokens of one forward pass, 0: 256, with a GPU 512; more take more memory, never "
                 "another result")
      ->transform(in_range(int64_t{0}, int64_t{4096}));
  app.add_flag_callback(
      "--no-repack", [&o] { o.session.repack = false; },
      "Leave the CPU's weights in the file: opens at once and shares their memory, decodes slower");
  auto* cpu = app.add_flag("--cpu", o.cpu, "Run on the CPU");
  app.add_flag("--gpu", o.gpu, "Run on a GPU, or end with status 69 and the reason")->excludes(cpu);
  app.add_option("--gpu-layers", o.session.gpu_layers,
                 "How many layers a GPU takes, the last ones: a number, all, or auto for as many as fit")
      ->check(gpu_layers_check())
      ->excludes(cpu);
  app.add_option("--gpu-split", o.gpu_split,
                 "Shares of several GPUs in those layers, as 3,1; without it, one GPU is used")
      ->excludes(cpu);
}

std::string backend_of(const ModelOptions& options) {
  const bool card = options.gpu || !options.session.gpu_layers.empty() || !options.gpu_split.empty();
  return options.cpu ? "cpu" : card ? "cuda" : "auto";
}

api::SessionOptions ModelOptions::opened(const Log& log) const {
  api::SessionOptions o = session;
  o.model_path = model_path;
  o.log = log;
  o.backend = backend_of(*this);
  if (!gpu_split.empty())
    for (int64_t share : parse_numbers(gpu_split, "--gpu-split")) {
      if (share < 0 || share > 1000) fail(Code::kUsage, "[cli] --gpu-split: {} is not in 0 to 1000", share);
      o.gpu_split.push_back(static_cast<double>(share));
    }
  if (model_path.empty()) {
    o.model_path = kDemoModelName;
    o.model_bytes = demo_model();
  }
  return o;
}

std::unique_ptr<api::Session> open_session(const ModelOptions& options, const Log& log) {
  const api::SessionOptions session = options.opened(log);
  explain_bus_errors(session.model_path);
  return take(api::Session::open(session));
}

void add_sampling_options(CLI::App& app, api::Generation& generation) {
  api::SamplingParams& s = generation.sampling;
  app.add_option("--max-tokens,-n", generation.max_tokens, "New tokens at most; -1: to the context's end")
      ->transform(in_range(int64_t{-1}, kMany));
  app.add_option("--temperature", s.temperature, "0: always the most probable token")
      ->transform(in_range(0.0, 100.0));
  app.add_option("--top-k", s.top_k, "Keep the K most probable; 0: all")
      ->transform(in_range(int64_t{0}, int64_t{INT32_MAX}));
  app.add_option("--top-p", s.top_p, "Keep the most probable that sum to P; 1: all")
      ->transform(in_range(0.0, 1.0));
  app.add_option("--min-p", s.min_p, "Drop what is less probable than P times the best; 0: nothing")
      ->transform(in_range(0.0, 1.0));
  app.add_option("--typical-p", s.typical_p, "Locally typical sampling; 1: off")
      ->transform(in_range(0.0, 1.0));
  app.add_option("--repeat-penalty", s.repeat_penalty, "Divide the logits of recent tokens by this; 1: off")
      ->transform(in_range(0.0, 10.0));
  app.add_option("--repeat-last-n", s.repeat_last_n, "Tokens the penalties look back on; -1: all")
      ->transform(in_range(int64_t{-1}, int64_t{1} << 30));
  app.add_option("--presence-penalty", s.presence_penalty, "Subtract from tokens seen")
      ->transform(in_range(-2.0, 2.0));
  app.add_option("--frequency-penalty", s.frequency_penalty, "Subtract for each time seen")
      ->transform(in_range(-2.0, 2.0));
  app.add_option("--seed", s.seed, "Random seed; without it, a new one each time")
      ->transform(in_range(uint64_t{0}, std::numeric_limits<uint64_t>::max()));
  app.add_option("--stop", generation.stop, "End the reply before this text (may be given several times)")
      ->default_str("")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option_function<std::vector<std::string>>(
         "--logit-bias",
         [&s](const std::vector<std::string>& pairs) {
           s.logit_bias.clear();
           for (const std::string& pair : pairs) {
             const size_t eq = std::min(pair.find('='), pair.size());
             const auto id = parse_number<int32_t>(std::string_view(pair).substr(0, eq));
             const auto value =
                 parse_number<float>(std::string_view(pair).substr(std::min(eq + 1, pair.size())));
             if (!id || !value)
               throw CLI::ValidationError("--logit-bias", "\"" + pair + "\" is not ID=VALUE, two numbers");
             s.logit_bias.emplace_back(*id, *value);
           }
         },
         "ID=VALUE, added to the logit of a token (may be given several times)")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

std::string read_text(const std::string& path) {
  constexpr size_t kLargest = size_t{1} << 30, kStep = 65536;
  const bool standard = path == "-";
  const int fd = standard ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::string text;
  ssize_t n = fd < 0 ? -1 : 1;
  while (n > 0 && text.size() <= kLargest) {
    const size_t size = text.size();
    text.resize(size + kStep);
    do n = ::read(fd, text.data() + size, kStep);
    while (n < 0 && errno == EINTR);
    text.resize(size + static_cast<size_t>(std::max<ssize_t>(n, 0)));
  }
  const int why = errno;
  if (fd >= 0 && !standard) ::close(fd);
  if (n < 0) fail(Code::kNoInput, "[cli] cannot read {}: {}", standard ? "stdin" : path, std::strerror(why));
  if (text.size() > kLargest)
    fail(Code::kBadData, "[cli] {} holds more than {} bytes", standard ? "stdin" : path, kLargest);
  return text;
}

std::vector<int64_t> parse_numbers(const std::string& list, const char* what, Code code) {
  std::vector<int64_t> numbers;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string_view word = std::string_view(list).substr(begin, end - begin);
    const auto number = parse_number<int64_t>(word);
    if (!number) fail(code, "[cli] {}: \"{}\" is not a number it can take", what, word);
    numbers.push_back(*number);
    begin = end + 1;
  }
  return numbers;
}

}  // namespace juno::cli
