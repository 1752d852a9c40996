#include "plugin/transport/nccl_net/loaded_file.h"

#include <elf.h>
#include <link.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstring>

namespace riffle::nccl_net {
namespace {

constexpr std::size_t kNoteAlignment = 4;

std::size_t padded(std::size_t bytes) {
  return (bytes + kNoteAlignment - 1) / kNoteAlignment * kNoteAlignment;
}

// Of the notes in [note, note + size); empty: none is a build id.
std::string build_id_in(const char* note, std::size_t size) {
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) head;
    std::memcpy(&head, note, sizeof head);
    const std::size_t name_at = sizeof head, id_at = name_at + padded(head.n_namesz);
    const std::size_t end = id_at + padded(head.n_descsz);
    if (end > size) return "";
    const bool is_gnu =
        head.n_namesz == sizeof ELF_NOTE_GNU && std::memcmp(note + name_at, ELF_NOTE_GNU, 4) == 0;
    if (is_gnu && head.n_type == NT_GNU_BUILD_ID) return {note + id_at, head.n_descsz};
    note += end;
    size -= end;
  }
  return "";
}

struct Search {
  std::uintptr_t address;
  LoadedFile found;
};

bool holds(const dl_phdr_info& object, std::uintptr_t address) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const auto& part = object.dlpi_phdr[i];
    const std::uintptr_t begin = object.dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD && address >= begin && address - begin < part.p_memsz) return true;
  }
  return false;
}

int look_at(dl_phdr_info* object, std::size_t, void* data) {
  Search& search = *static_cast<Search*>(data);
  if (!holds(*object, search.address)) return 0;
  const bool is_program = object->dlpi_name == nullptr || *object->dlpi_name == '\0';
  search.found.path = is_program ? "/proc/self/exe" : object->dlpi_name;
  for (int i = 0; i < object->dlpi_phnum && search.found.build_id.empty(); ++i) {
    const auto& part = object->dlpi_phdr[i];
    if (part.p_type != PT_NOTE) continue;
    search.found.build_id =
        build_id_in(reinterpret_cast<const char*>(object->dlpi_addr + part.p_vaddr), part.p_memsz);
  }
  return 1;
}

}  // namespace

LoadedFile file_holding(const void* address) {
  Search search{reinterpret_cast<std::uintptr_t>(address), {}};
  ::dl_iterate_phdr(look_at, &search);
  struct stat status {};
  if (::stat(search.found.path.c_str(), &status) == 0) {
    search.found.device = status.st_dev;
    search.found.inode = status.st_ino;
  }
  return search.found;
}

bool is_same_build(const LoadedFile& a, const LoadedFile& b) {
  if (a.inode != 0 && a.inode == b.inode && a.device == b.device) return true;
  return !a.build_id.empty() && a.build_id == b.build_id;
}

}  // namespace riffle::nccl_net
