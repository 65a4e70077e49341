#include "tracefs/export/xray_map.h"

#include <elf.h>

#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include "tracefs/base/bytes.h"

namespace tracefs {
namespace {

constexpr uint64_t kTextAddress = 0x10000;
constexpr uint64_t kFunctionBytes = 16;

template <typename T>
void Append(const T& value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Entry and exit of a function, 32 bytes each: address, function, kind, always,
// version, padding.
void AppendSleds(uint64_t address, std::string* out) {
  for (const uint8_t kind : {uint8_t{0}, uint8_t{1}}) {
    Append(address + (kind == 0 ? 0 : 8), out);
    Append(address, out);
    *out += static_cast<char>(kind);
    *out += '\1';
    out->append(14, '\0');
  }
}

}  // namespace

std::string XrayMap() {
  std::vector<std::string> functions;
  for (size_t op = 0; op < kOpCount; ++op) {
    functions.push_back("fs_" + std::string(OpName(static_cast<Op>(op))));
  }
  functions.emplace_back("tracefs_start");

  std::string text(kFunctionBytes * functions.size(), '\x90');
  std::string sleds;
  std::string names(1, '\0');
  std::string symbols(sizeof(Elf64_Sym), '\0');
  for (size_t i = 0; i < functions.size(); ++i) {
    const uint64_t address = kTextAddress + i * kFunctionBytes;
    text[(i + 1) * kFunctionBytes - 1] = '\xc3';
    AppendSleds(address, &sleds);
    Elf64_Sym symbol = {};
    symbol.st_name = static_cast<Elf64_Word>(names.size());
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    symbol.st_shndx = 1;
    symbol.st_value = address;
    symbol.st_size = kFunctionBytes;
    Append(symbol, &symbols);
    names += functions[i];
    names += '\0';
  }

  constexpr std::string_view kSectionNames(
      "\0.text\0xray_instr_map\0.symtab\0.strtab\0.shstrtab\0", 49);
  std::string file(sizeof(Elf64_Ehdr), '\0');
  std::array<Elf64_Shdr, 6> sections = {};
  const auto add = [&](size_t number, std::string_view name, uint32_t type,
                       uint64_t flags, std::string_view contents) {
    file.resize((file.size() + 15) / 16 * 16, '\0');
    Elf64_Shdr& section = sections[number];
    section.sh_name = static_cast<Elf64_Word>(
        kSectionNames.find(std::string("\0", 1) + std::string(name) +
                           std::string("\0", 1)) +
        1);
    section.sh_type = type;
    section.sh_flags = flags;
    section.sh_offset = file.size();
    section.sh_size = contents.size();
    section.sh_addralign = 16;
    file += contents;
  };
  add(1, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, text);
  sections[1].sh_addr = kTextAddress;
  add(2, "xray_instr_map", SHT_PROGBITS, SHF_ALLOC, sleds);
  sections[2].sh_addr = kTextAddress + 0x10000;
  add(3, ".symtab", SHT_SYMTAB, 0, symbols);
  sections[3].sh_link = 4;
  sections[3].sh_info = 1;  // the first symbol that is not local
  sections[3].sh_entsize = sizeof(Elf64_Sym);
  add(4, ".strtab", SHT_STRTAB, 0, names);
  add(5, ".shstrtab", SHT_STRTAB, 0, kSectionNames);

  file.resize((file.size() + 15) / 16 * 16, '\0');
  Elf64_Ehdr head = {};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_ident[EI_DATA] = ELFDATA2LSB;
  head.e_ident[EI_VERSION] = EV_CURRENT;
  head.e_type = ET_EXEC;
  // Whatever machine this is: the map is read, never run.
  head.e_machine = EM_X86_64;
  head.e_version = EV_CURRENT;
  head.e_shoff = file.size();
  head.e_ehsize = sizeof(Elf64_Ehdr);
  head.e_shentsize = sizeof(Elf64_Shdr);
  head.e_shnum = sections.size();
  head.e_shstrndx = 5;
  std::memcpy(file.data(), &head, sizeof head);
  for (const Elf64_Shdr& section : sections) Append(section, &file);
  return file;
}

}  // namespace tracefs
