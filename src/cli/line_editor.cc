// SPDX-License-Identifier: Apache-2.0
#include "cli/line_editor.h"

#include <histedit.h>
#include <unistd.h>

#include <clocale>
#include <csignal>
#include <cstdio>
#include <cwchar>

namespace juno::cli {
namespace {

constexpr int kHistorySize = 1000;
constexpr char kPasteOn[] = "\x1b[?2004h", kPasteOff[] = "\x1b[?2004l";

std::string narrow(const wchar_t* wide) {
  static constexpr uint32_t kLead[] = {0, 0xC0, 0xE0, 0xF0};
  std::string out;
  for (; *wide; ++wide) {
    const auto c = static_cast<uint32_t>(*wide);
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else {
      const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
      out += static_cast<char>(kLead[more] | c >> (6 * more));
      for (int i = more; i-- > 0;) out += static_cast<char>(0x80 | (c >> (6 * i) & 0x3F));
    }
  }
  return out;
}

// The inverse of narrow().
std::wstring widen(const std::string& narrow) {
  std::wstring out;
  for (const char byte : narrow) {
    const auto c = static_cast<unsigned char>(byte);
    if (c < 0x80) out += static_cast<wchar_t>(c);
    else if (c >= 0xC0) out += static_cast<wchar_t>(c & (c < 0xE0 ? 0x1F : c < 0xF0 ? 0x0F : 0x07));
    else if (!out.empty()) out.back() = static_cast<wchar_t>(out.back() << 6 | (c & 0x3F));
  }
  return out;
}

void to_terminal(const char* sequence) {
  std::fputs(sequence, stdout);
  std::fflush(stdout);
}

}  // namespace

struct LineEditor::Impl {
  EditLine* editor = nullptr;
  HistoryW* history = nullptr;
  std::string history_file;
  std::wstring prompt;
  bool interrupted = false, emptied = false;

  static Impl& of(EditLine* editor) {
    void* self = nullptr;
    el_wget(editor, EL_CLIENTDATA, &self);
    return *static_cast<Impl*>(self);
  }

  static wchar_t* show_prompt(EditLine* editor) { return of(editor).prompt.data(); }

  // Ctrl-C arrives as a character: the terminal's own signals are off while a line is edited.
  static unsigned char interrupt(EditLine* editor, wint_t) {
    const LineInfoW* line = el_wline(editor);
    if (line->lastchar == line->buffer) {
      of(editor).interrupted = true;
      return CC_EOF;
    }
    of(editor).emptied = true;
    el_cursor(editor, static_cast<int>(line->lastchar - line->cursor));
    el_deletestr(editor, static_cast<int>(line->lastchar - line->buffer));
    return CC_REFRESH;
  }

  static unsigned char suspend(EditLine* editor, wint_t) {
    to_terminal(kPasteOff);
    std::raise(SIGTSTP);  // libedit puts the terminal back before and after
    to_terminal(kPasteOn);
    el_wset(editor, EL_REFRESH);
    return CC_REDISPLAY;
  }

  // Everything up to ESC [ 201 ~ is text: newlines stay, other control characters are dropped.
  static unsigned char paste(EditLine* editor, wint_t) {
    static constexpr wchar_t kEnd[] = L"\x1b[201~";
    std::wstring text;
    wchar_t c;
    while (el_wgetc(editor, &c) == 1) {
      text += c;
      if (text.ends_with(kEnd)) {
        text.resize(text.size() - std::wcslen(kEnd));
        break;
      }
    }
    std::wstring clean;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == L'\r') {
        clean += L'\n';
        if (i + 1 < text.size() && text[i + 1] == L'\n') ++i;
      } else if (text[i] == L'\n' || text[i] == L'\t' || (text[i] >= 0x20 && text[i] != 0x7f)) {
        clean += text[i] == L'\t' ? L' ' : text[i];
      }
    }
    if (!clean.empty()) el_winsertstr(editor, clean.c_str());
    return CC_REFRESH;
  }
};

LineEditor::LineEditor(std::string history) : impl_(std::make_unique<Impl>()) {
  if (!std::setlocale(LC_CTYPE, "C.UTF-8")) std::setlocale(LC_CTYPE, "");
  Impl& self = *impl_;
  self.history_file = std::move(history);
  self.editor = el_init("juno", stdin, stdout, stderr);
  self.history = history_winit();
  HistEventW event;
  history_w(self.history, &event, H_SETSIZE, kHistorySize);
  history_w(self.history, &event, H_SETUNIQUE, 1);
  if (!self.history_file.empty()) history_w(self.history, &event, H_LOAD, self.history_file.c_str());
  el_wset(self.editor, EL_CLIENTDATA, &self);
  el_wset(self.editor, EL_PROMPT, &Impl::show_prompt);
  el_wset(self.editor, EL_EDITOR, L"emacs");
  el_wset(self.editor, EL_HIST, history_w, self.history);
  el_wset(self.editor, EL_ADDFN, L"juno-interrupt", L"Leave or empty the line", &Impl::interrupt);
  el_wset(self.editor, EL_ADDFN, L"juno-paste", L"Insert a bracketed paste", &Impl::paste);
  el_wset(self.editor, EL_ADDFN, L"juno-suspend", L"Suspend the program", &Impl::suspend);
  el_wset(self.editor, EL_SIGNAL, 1);
  el_wset(self.editor, EL_SETTY, L"-d", L"-isig", nullptr);
  el_wset(self.editor, EL_BIND, L"^C", L"juno-interrupt", nullptr);
  el_wset(self.editor, EL_BIND, L"^Z", L"juno-suspend", nullptr);
  el_wset(self.editor, EL_BIND, L"\x1b[200~", L"juno-paste", nullptr);
  el_wset(self.editor, EL_BIND, L"^R", L"em-inc-search-prev", nullptr);
  el_source(self.editor, nullptr);
}

LineEditor::~LineEditor() {
  HistEventW event;
  if (!impl_->history_file.empty()) history_w(impl_->history, &event, H_SAVE, impl_->history_file.c_str());
  history_wend(impl_->history);
  el_end(impl_->editor);
}

LineEditor::End LineEditor::read(const std::string& prompt, std::string& text) {
  Impl& self = *impl_;
  self.prompt.assign(prompt.begin(), prompt.end());  // ASCII
  self.interrupted = self.emptied = false;
  el_wset(self.editor, EL_PREP_TERM,
          1);  // before the prompt is seen: a Ctrl-C that answers it must find its key
  to_terminal(kPasteOn);
  int count = 0;
  const wchar_t* line = el_wgets(self.editor, &count);
  to_terminal(kPasteOff);
  if (!line || count <= 0) {
    to_terminal("\n");
    return self.interrupted ? End::kInterrupt : End::kEof;
  }
  text = narrow(line);
  if (text.ends_with('\n')) text.pop_back();
  return End::kLine;
}

bool LineEditor::emptied() const { return impl_->emptied; }

void LineEditor::remember(const std::string& text) {
  HistEventW event;
  if (!text.empty()) history_w(impl_->history, &event, H_ENTER, (widen(text) + L'\n').c_str());
}

}  // namespace juno::cli
