#include "tools/command_line/manual.h"

#include "plugin/config/config.h"
#include "plugin/version.h"
#include "tools/command_line/command_tree.h"
#include "tools/command_line/help_text.h"

namespace riffle::tools {
namespace {

// Text that roff takes as it is.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) {
      out += "\\&";
      out += c;
    } else {
      out += c;
    }
  }
  return out;
}

std::string option_entries(const CLI::App& command) {
  std::string text;
  for (const CLI::Option* option : options_of(command)) {
    std::string title;
    for (const std::string& name : names_of(*option)) {
      title += (title.empty() ? "\\fB" : ", \\fB") + roff(name) + "\\fR";
    }
    if (title.empty()) title = "\\fI" + roff(option->get_name(true)) + "\\fR";
    if (takes_value(*option) && option->nonpositional()) {
      title += " \\fI" + roff(accepted_by(*option)) + "\\fR";
    }
    if (option->get_required()) title += " (required)";
    text += ".TP\n" + title + "\n" + roff(option->get_description());
    if (!option->get_default_str().empty()) text += ". Default: " + roff(option->get_default_str());
    text += "\n";
  }
  return text;
}

std::string synopsis(const CLI::App& command) {
  std::string text = "\\fBriffle " + roff(command.get_name()) + "\\fR";
  bool has_options = false;
  for (const CLI::Option* option : options_of(command)) has_options |= option->nonpositional();
  if (has_options) text += " [\\fIoptions\\fR]";
  for (const CLI::Option* option : options_of(command)) {
    if (option->nonpositional()) continue;
    const std::string name = "\\fI" + roff(option->get_name(true)) + "\\fR";
    text += option->get_required() ? " " + name : " [" + name + "]";
    if (option->get_items_expected_max() > 1) text += "...";
  }
  return text;
}

// Paragraphs of a footer; its examples keep their lines.
std::string footer_text(const std::string& footer) {
  return footer.empty() ? "" : ".PP\n.nf\n" + roff(footer) + "\n.fi\n";
}

}  // namespace

std::string man_page(const CLI::App& app) {
  const std::string& described = app.get_description();  // "Riffle: what it is"
  const std::string about = described.substr(described.find(": ") + 2);
  std::string text = ".TH RIFFLE 1 \"\" \"riffle " + std::string(kVersion) +
                     "\"\n.SH NAME\nriffle \\- " + roff(about) +
                     "\n.SH SYNOPSIS\n\\fBriffle\\fR \\fIcommand\\fR "
                     "[\\fIoptions\\fR]\n";
  text += ".SH COMMANDS\n";
  for (const CLI::App* command : commands_of(app)) {
    text += ".SS " + synopsis(*command) + "\n" + roff(command->get_description()) + ".\n" +
            option_entries(*command) + footer_text(command->get_footer());
  }
  text +=
      ".SH EXIT STATUS\n0: done. 1: found a problem, or failed. 2: wrong usage or bad input.\n"
      ".SH FILES\nSettings: see \\fBriffle.conf\\fR(5).\n.SH SEE ALSO\n\\fBriffle.conf\\fR(5)\n";
  return text;
}

std::string settings_page() {
  std::string text =
      ".TH RIFFLE.CONF 5 \"\" \"riffle " + std::string(kVersion) +
      "\"\n.SH NAME\nriffle.conf \\- settings of the Riffle plugin for NCCL\n"
      ".SH DESCRIPTION\nEvery setting is an environment variable, or a line "
      "\\fIKEY\\fR=\\fIVALUE\\fR of a file; # begins a comment. The environment counts "
      "first, then the file named by \\fBRIFFLE_CONF_FILE\\fR, else "
      "\\fI~/.riffle.conf\\fR, then \\fI/etc/riffle.conf\\fR. A bad value is reported and "
      "the default holds. \\fBriffle config\\fR shows what is in force.\n.SH SETTINGS\n";
  for (const KnobInfo& knob : knobs()) {
    text += ".TP\n\\fB" + roff(knob.name) + "\\fR\n" + roff(knob.help) + "\n.br\n" +
            roff(knob.type) + ", accepted: " + roff(knob.range) +
            "; default: " + (knob.default_value.empty() ? "empty" : roff(knob.default_value)) +
            (knob.in_digest ? "; equal on all nodes" : "") + ".\n";
  }
  return text + ".SH SEE ALSO\n\\fBriffle\\fR(1)\n";
}

}  // namespace riffle::tools
