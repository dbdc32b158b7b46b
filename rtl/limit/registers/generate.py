#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Makes of weir_limit.rdl what the RTL, software and people read: generated/weir_limit_map.sv, weir_limit.h and weir_limit.md.

  rtl/limit/registers/generate.py            writes them
  rtl/limit/registers/generate.py --check    compares them with what is there

PeakRDL's exporters are not used: regblock's RTL is not in the subset that Yosys reads and keeps every register in flip-flops, cheader's header needs
<assert.h>, which bare-metal compilers lack, and markdown's pages list each of the 1,024 sources (docs/decisions). The compiler underneath is theirs.
Exit: 0 written or equal, 1 (--check) something differs, 2 the description cannot be read.
"""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]

try:
    import systemrdl
except ImportError:
    folder = subprocess.run([ROOT / "scripts/python-env.sh", "rtl"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    os.execv(f"{folder}/bin/python", [f"{folder}/bin/python", __file__, *sys.argv[1:]])

from systemrdl.node import RegNode

NOTICE = "Generated from weir_limit.rdl by rtl/limit/registers/generate.py."


def camel(name):
    return "".join(part.capitalize() for part in name.split("_"))


class Map:
    """The registers below the sources, the sources' own, and where those begin. The RTL decodes addresses by bits, so the layout must allow that."""

    def __init__(self, top):
        self.top = top
        self.words = [child for child in top.children(unroll=False) if isinstance(child, RegNode)]
        [self.source] = [child for child in top.children(unroll=False) if not isinstance(child, RegNode)]
        self.registers = list(self.source.children(unroll=False))
        self.base, self.stride = self.source.raw_address_offset, self.source.array_stride
        for power in (self.base, self.stride):
            if power & (power - 1):
                raise ValueError(f"{power:#x} is not a power of two")
        # The registers must fit into the lower half of a source's address slot. BEGAN needs one
        # more code.
        if len(self.registers) >= self.stride // 4 or self.base < self.source.array_dimensions[0] * self.stride:
            raise ValueError("the registers of the sources do not fit where they are")


def rtl(layout):
    which_bits = (layout.stride // 4 - 1).bit_length()
    word_bits = layout.base.bit_length() - 1 - 2
    lines = [
        "// SPDX-License-Identifier: MIT OR Apache-2.0",
        f"// {NOTICE}",
        "// Word…: address / 4. Reg…: the same within a source's registers; RegBegan stands for BEGAN. Others: a field's lowest bit.",
        "`default_nettype none",
        "",
        "package weir_limit_map;",
        f"  localparam int SourceBit = {layout.base.bit_length() - 1};",
        f"  localparam int StrideBits = {layout.stride.bit_length() - 1};",
    ]
    for word in layout.words:
        lines.append(f"  localparam logic [{word_bits - 1}:0] Word{camel(word.inst_name)} = {word_bits}'d{word.raw_address_offset // 4};")
    for register in layout.registers:
        lines.append(f"  localparam logic [{which_bits - 1}:0] Reg{camel(register.inst_name)} = {which_bits}'d{register.raw_address_offset // 4};")
    lines.append(f"  localparam logic [{which_bits - 1}:0] RegBegan = {which_bits}'d{len(layout.registers)};")
    identity = layout.top.get_child_by_name("ID")
    value = sum(field.get_property("reset") << field.low for field in identity.fields())
    lines.append(f"  localparam logic [31:0] IdValue = 32'h{value:08x};")
    for register in [*layout.words, *layout.registers]:
        for field in register.fields():
            if register.inst_name != "ID" and len(list(register.fields())) > 1:
                lines.append(f"  localparam int {camel(register.inst_name)}{camel(field.inst_name)} = {field.low};")
    lines += ["endpackage", "", "`default_nettype wire", ""]
    return "\n".join(lines)


def c_header(layout):
    lines = [
        "/* SPDX-License-Identifier: MIT OR Apache-2.0 */",
        "/**",
        f" * {NOTICE}",
        " *",
        " * Byte offsets from the base of a weir_limit, and its fields: _BIT for those of one bit, _SHIFT and _MASK (unshifted) for others. weir_limit.md",
        " * says what they mean. All registers are 32 bits wide; what does not fit is refused by a bus error.",
        " */",
        "#ifndef WEIR_LIMIT_REGISTERS_H",
        "#define WEIR_LIMIT_REGISTERS_H",
        "",
    ]
    for word in layout.words:
        name, offset = f"WEIR_LIMIT_{word.inst_name}", word.raw_address_offset
        if word.is_array:
            lines.append(f"#define {name}(n) ({offset:#06x}u + {word.array_stride}u * (n)) /* n: 0 to {word.array_dimensions[0] - 1} */")
        else:
            lines.append(f"#define {name} {offset:#06x}u")
    for register in layout.registers:
        offset = layout.base + register.raw_address_offset
        lines.append(f"#define WEIR_LIMIT_{register.inst_name}(source) ({offset:#06x}u + {layout.stride}u * (source))")
    for register in [*layout.words, *layout.registers]:
        if any(field.width < 32 for field in register.fields()):
            lines.append("")
        for field in register.fields():
            name = f"WEIR_LIMIT_{register.inst_name}_{field.inst_name}"
            if field.width == 1:
                lines.append(f"#define {name}_BIT (1u << {field.low})")
            elif field.width < 32:
                lines.append(f"#define {name}_SHIFT {field.low}")
                lines.append(f"#define {name}_MASK {(1 << field.width) - 1:#x}u")
    identity = layout.top.get_child_by_name("ID")
    value = sum(field.get_property("reset") << field.low for field in identity.fields())
    lines += ["", "/* What ID reads as. */", f"#define WEIR_LIMIT_ID_VALUE {value:#010x}u", "", "#endif", ""]
    return "\n".join(lines)


def access(field):
    if not field.is_sw_writable:
        return "read"
    written = field.get_property("onwrite")
    return {None: "read, write", "woclr": "read, write 1 to clear", "wclr": "read, any write clears"}[written.name if written else None]


def paragraphs(text):
    """The text as it is in the description, without the line breaks within its paragraphs; what is indented stays as it is."""
    return "\n\n".join(part if part.startswith("    ") else " ".join(part.split()) for part in (text or "").split("\n\n"))


def markdown(layout):
    lines = ["<!-- SPDX-License-Identifier: MIT OR Apache-2.0 -->", f"<!-- {NOTICE} -->", "# Registers of weir_limit"]
    lines += ["", paragraphs(layout.top.get_property("desc")), ""]
    lines += ["| offset | register | |", "|---|---|---|"]
    many = {word.inst_name: f" + 4n, n = 0 to {word.array_dimensions[0] - 1}" for word in layout.words if word.is_array}
    rows = [(word, f"{word.raw_address_offset:#06x}" + many.get(word.inst_name, "")) for word in layout.words]
    rows += [(register, f"{layout.base + register.raw_address_offset:#06x} + {layout.stride}s") for register in layout.registers]
    lines += [f"| {where} | {register.inst_name} | {register.get_property('name')} |" for register, where in rows]
    lines += ["", f"s is the number of the source, 0 to SHAPE.LAST (at most {layout.source.array_dimensions[0] - 1}).", ""]
    for register, where in rows:
        lines += [f"## {register.inst_name}: {register.get_property('name').lower()}", "", f"At {where}."]
        if register.get_property("desc"):
            lines += ["", paragraphs(register.get_property("desc"))]
        lines += ["", "| bits | field | access | |", "|---|---|---|---|"]
        for field in register.fields():
            bits = str(field.low) if field.width == 1 else f"{field.high}:{field.low}"
            lines.append(f"| {bits} | {field.inst_name} | {access(field)} | {paragraphs(field.get_property('desc'))} |")
        lines.append("")
    return "\n".join(lines)


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    compiler = systemrdl.RDLCompiler()
    try:
        compiler.compile_file(str(HERE / "weir_limit.rdl"))
        layout = Map(compiler.elaborate().top)
    except (systemrdl.RDLCompileError, ValueError) as error:
        print(f"generate: weir_limit.rdl: {error}", file=sys.stderr)
        return 2
    differs = False
    for name, text in (("weir_limit_map.sv", rtl(layout)), ("weir_limit.h", c_header(layout)), ("weir_limit.md", markdown(layout))):
        path = HERE / "generated" / name
        if sys.argv[1:] == ["--check"]:
            if not path.exists() or path.read_text() != text:
                print(f"generate: {path.relative_to(ROOT)} is not what weir_limit.rdl says: run rtl/limit/registers/generate.py", file=sys.stderr)
                differs = True
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
    return 1 if differs else 0


if __name__ == "__main__":
    sys.exit(main())
