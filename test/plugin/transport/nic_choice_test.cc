// Which NICs carry traffic: the machines of nic_machines.txt, each as a sysfs tree that is read as
// the real one is.
#include "plugin/transport/device/nic_choice.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace riffle::nic_choice_test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> words_of(std::string text, char separator = ' ') {
  std::replace(text.begin(), text.end(), separator, ' ');
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

struct Interface {
  std::string name;
  std::vector<std::string> addresses;
  std::map<std::string, std::string> facts;  // speed, driver, ...; down and no-carrier are empty
};

struct Machine {
  std::string name;
  std::vector<Interface> interfaces;
  DeviceChoice choice;
  std::string uses, left_out, warning, error;
};

Interface interface_of(const std::string& line) {
  std::vector<std::string> words = words_of(line);
  Interface out{.name = words[0], .addresses = {}, .facts = {}};
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    if (equals != std::string::npos) {
      out.facts[words[i].substr(0, equals)] = words[i].substr(equals + 1);
    } else if (words[i] == "down" || words[i] == "no-carrier") {
      out.facts[words[i]] = "";
    } else {
      out.addresses.push_back(words[i]);
    }
  }
  return out;
}

void set(DeviceChoice& choice, const std::string& setting) {
  const std::size_t equals = setting.find('=');
  const std::string name = setting.substr(0, equals), value = setting.substr(equals + 1);
  if (name == "RIFFLE_SOCKET_IFNAME") {
    choice.rule = value;
    choice.rule_source = name;
  } else if (name == "RIFFLE_SOCKET_FAMILY") {
    choice.family = value;
  } else {
    ASSERT_EQ(setting, "RIFFLE_DEVICE_PER_NIC=1");
    choice.per_nic = true;
  }
}

std::vector<Machine> all_machines() {
  std::vector<Machine> machines;
  std::ifstream file(RIFFLE_NIC_MACHINES);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t space = line.find(' ', 1);
    const std::string kind = line.substr(0, space), rest = line.substr(space + 1);
    if (kind == "machine") {
      machines.emplace_back().name = rest;
      continue;
    }
    Machine& machine = machines.at(machines.size() - 1);
    if (kind[0] == ' ') machine.interfaces.push_back(interface_of(line));
    if (kind == "set") set(machine.choice, rest);
    if (kind == "uses") machine.uses = rest;
    if (kind == "not") machine.left_out += rest + "\n";
    if (kind == "warning") machine.warning = rest;
    if (kind == "error") machine.error = rest;
  }
  return machines;
}

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text << "\n";
}

void link(const fs::path& from, const fs::path& to) {
  fs::create_directories(to);
  fs::create_directories(from.parent_path());
  fs::create_directory_symlink(to, from);
}

// As the kernel shows it.
void make_sysfs(const fs::path& root, const Machine& machine) {
  fs::create_directories(root / "class/net");
  int card = 0;
  for (const Interface& i : machine.interfaces) {
    const fs::path net = root / "class/net" / i.name;
    const bool is_down = i.facts.contains("down");
    write(net / "flags", i.name == "lo" ? "0x9" : is_down ? "0x1002" : "0x1003");
    if (!is_down) write(net / "carrier", i.facts.contains("no-carrier") ? "0" : "1");
    std::string uevent = "INTERFACE=" + i.name;
    for (const auto& [key, value] : i.facts) {
      if (key == "speed") write(net / "speed", value);
      if (key == "kind") uevent = "DEVTYPE=" + value + "\n" + uevent;
      if (key == "driver") {
        const fs::path device =
            root / "devices/pci0000:00" / ("0000:00:0" + std::to_string(card++) + ".0");
        link(net / "device", device);
        link(device / "driver", root / "bus/pci/drivers" / value);
      }
      for (const std::string& below : words_of(key == "over" || key == "bond" ? value : "", ',')) {
        link(net / ("lower_" + below), root / "class/net" / below);
        if (key == "over") continue;
        link(root / "class/net" / below / "master", net);
        write(root / "class/net" / below / "bonding_slave/state", "active");
      }
      if (key == "bond") {
        std::string members = value;
        std::replace(members.begin(), members.end(), ',', ' ');
        write(net / "bonding/slaves", members);
      }
    }
    write(net / "uevent", uevent);
  }
}

std::vector<NicAddress> addresses_of(const Machine& machine) {
  std::vector<NicAddress> out;
  for (const Interface& i : machine.interfaces) {
    if (i.facts.contains("down")) continue;
    for (const std::string& a : i.addresses) {
      out.push_back({.interface = i.name, .address = a, .is_ipv6 = a.find(':') != a.npos});
    }
  }
  return out;
}

void check(const Machine& machine, const Result<NicChoice>& made) {
  if (!machine.error.empty()) {
    ASSERT_FALSE(made);
    EXPECT_EQ(made.status().message(), machine.error);
    return;
  }
  ASSERT_TRUE(made) << made.status().message();
  std::string uses, left_out, warning;
  for (const NicAddress& a : (*made).chosen) uses += (uses.empty() ? "" : " ") + a.interface;
  for (const LeftOut& l : (*made).left_out) left_out += l.interface + " " + l.why + "\n";
  for (const std::string& w : (*made).warnings) warning += w + "\n";
  EXPECT_EQ(uses, machine.uses);
  EXPECT_EQ(left_out, machine.left_out);
  EXPECT_EQ(warning.empty(), machine.warning.empty()) << warning;
  EXPECT_NE(warning.find(machine.warning), std::string::npos) << warning;
}

TEST(NicChoice, OfEveryMachine) {
  const std::vector<Machine> machines = all_machines();
  ASSERT_GE(machines.size(), 20u);
  const fs::path folder = fs::canonical(::testing::TempDir()) / "riffle_nic_choice";
  for (const Machine& machine : machines) {
    SCOPED_TRACE(machine.name);
    fs::remove_all(folder);
    make_sysfs(folder, machine);
    const Result<std::vector<Nic>> nics = list_nics(folder.string());
    ASSERT_TRUE(nics) << nics.status().message();
    check(machine, choose_nics(addresses_of(machine), *nics, machine.choice));
  }
  fs::remove_all(folder);
}

TEST(NicChoice, SaysWhatIsLeftOutButNotAllOfMany) {
  std::vector<LeftOut> left_out = {{"eno1", "no carrier"}, {"eth0", "virtual"}};
  EXPECT_EQ(to_text(left_out), "eno1 (no carrier), eth0 (virtual)");
  left_out.resize(20, {"cali", "virtual"});
  const std::string text = to_text(left_out);
  EXPECT_TRUE(text.ends_with("cali (virtual) and 8 more")) << text;
}

// Without sysfs names and addresses have to do.
std::string chosen_by_names(const std::vector<std::string>& interfaces) {
  std::vector<NicAddress> addresses;
  for (const std::string& name : interfaces) {
    addresses.push_back(
        {.interface = name, .address = name == "usb0" ? "169.254.1.2" : "10.0.0.5"});
  }
  const Result<NicChoice> made = choose_nics(addresses, {}, {});
  std::string names;
  for (const NicAddress& a : made.value().chosen) names += a.interface + " ";
  return names;
}

TEST(NicChoice, WithoutSysfsByNames) {
  EXPECT_EQ(chosen_by_names({"lo", "eth0", "docker0", "br-lan", "usb0", "eth1"}), "eth0 eth1 ");
  EXPECT_EQ(chosen_by_names({"lo", "veth0", "usb0"}), "veth0 ");
  EXPECT_EQ(chosen_by_names({"lo", "virbr0"}), "virbr0 ");
  EXPECT_EQ(chosen_by_names({"lo"}), "lo ");
}

}  // namespace
}  // namespace riffle::nic_choice_test
