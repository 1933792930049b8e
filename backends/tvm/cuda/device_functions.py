"""Mathematics as CUDA C: the CPU's formulas, whose LLVM text for one number is translated.

    name, text = device_function("tracejit_exp_float32x1", llvm_text)

Results are the CPU's, bit for bit: the same operations in the same order, products rounded before
they are added, and fused where a formula asks for that.
"""

from __future__ import annotations

import re
import struct

from tracejit.errors import CompilationError

C_TYPES = {
    "i1": "bool",
    "i8": "signed char",
    "i16": "short",
    "i32": "int",
    "i64": "long long",
    "half": "unsigned short",
    "float": "float",
    "double": "double",
}
_UNSIGNED = {
    "i8": "unsigned char",
    "i16": "unsigned short",
    "i32": "unsigned",
    "i64": "unsigned long long",
}
_FLOATS = {"float", "double"}

_BINARY = {"fadd": "+", "fsub": "-", "fmul": "*", "fdiv": "/"}
_WRAPPING = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^", "shl": "<<"}
_UNSIGNED_OPERATIONS = {"lshr": ">>", "udiv": "/", "urem": "%"}
_SIGNED_OPERATIONS = {"ashr": ">>", "sdiv": "/", "srem": "%"}
_ORDERED = {"olt": "<", "ole": "<=", "ogt": ">", "oge": ">=", "oeq": "=="}
_INTEGERS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_INTRINSICS = {
    "fma": "tj_fma",
    "fmuladd": "tj_muladd",
    "sqrt": "tj_sqrt",
    "fabs": "tj_fabs",
    "copysign": "tj_copysign",
    "floor": "tj_floor",
    "ceil": "tj_ceil",
    "trunc": "tj_trunc",
    "rint": "tj_rint",
    "roundeven": "tj_rint",
    "nearbyint": "tj_rint",
    "round": "tj_round",
    "maximum": "tj_maximum",
    "minimum": "tj_minimum",
    "maxnum": "tj_maxnum",
    "minnum": "tj_minnum",
    "arithmetic.fence": "",
    "ctpop": "tj_population_count",
    "ctlz": "tj_leading_zeros",
    "cttz": "tj_trailing_zeros",
    "smax": "tj_larger",
    "smin": "tj_smaller",
    "abs": "tj_absolute",
    "fshl": "tj_funnel_left",
}
_DEFINE = re.compile(r"define (\S+) @(\w+)\((.*)\) \{")
_WIDE = {"i128": "unsigned __int128"}


class Translator:
    """One LLVM function of one lane, while it becomes a device function."""

    def __init__(self, text: str) -> None:
        lines = [line for line in text.splitlines() if line.strip()]
        head = _DEFINE.match(lines[0])
        assert head is not None, lines[0]
        self._returns, self.name, parameters = head.groups()
        self._parameters = [p.split() for p in parameters.split(", ") if p]
        self._types: dict[str, str] = {name[1:]: kind for kind, name in self._parameters}
        self._lines: list[str] = []
        self._moves: dict[tuple[str, str], list[tuple[str, str]]] = {}
        body = lines[1:-1]
        block = "entry"
        for line in body:  # what blocks hand to the ones after them
            if re.fullmatch(r"[\w.]+:", line):
                block = line[:-1]
            phi = re.match(r"\s+%(\S+) = phi (\S+) (.*)", line)
            if phi is not None:
                target, kind, pairs = phi.groups()
                self._types[target] = kind
                for value, source in re.findall(r"\[ (\S+), %(\S+) \]", pairs):
                    self._moves.setdefault((source, block), []).append((target, value))
        block = "entry"
        for line in body:
            if re.fullmatch(r"[\w.]+:", line):
                block = line[:-1]
                if block != "entry":
                    self._lines.append(f"{_label(block)}:;")
            elif "= phi" not in line:
                self._instruction(line.strip(), block)

    def text(self) -> str:
        """The device function."""
        parameters = ", ".join(f"{_c(kind)} {_name(name[1:])}" for kind, name in self._parameters)
        known = {name[1:] for _, name in self._parameters}
        declared = [f"  {_c(k)} {_name(n)};" for n, k in self._types.items() if n not in known]
        head = f"__device__ static __forceinline__ {_c(self._returns)} {self.name}"
        lines = [f"  {line}" for line in self._lines]
        return "\n".join([f"{head}({parameters}) {{", *declared, *lines, "}"])

    def _value(self, text: str, kind: str) -> str:
        if text.startswith("%"):
            return _name(text[1:])
        if kind == "i1":
            return {"true": "true", "false": "false", "1": "true", "0": "false", "-1": "true"}[text]
        if kind in _FLOATS:
            return _float(text, kind)
        if kind in _WIDE:
            return f"(({_WIDE[kind]}){text}ull)"
        number = int(text)
        bits = int(kind[1:])
        number &= (1 << bits) - 1
        return f"(({_c(kind)}){number}{'ull' if bits == 64 else 'u'})"

    def _set(self, name: str, kind: str, value: str) -> None:
        self._types[name] = kind
        self._lines.append(f"{_name(name)} = {value};")

    def _jump(self, source: str, target: str) -> str:
        """The statements that hand values over and go to a block."""
        moves = self._moves.get((source, target), [])
        made = []
        for number, (name, value) in enumerate(moves):
            kind = self._types[name]
            made.append(f"{_c(kind)} next{number} = {self._value(value, kind)};")
        made += [f"{_name(name)} = next{number};" for number, (name, _) in enumerate(moves)]
        return "{ " + " ".join([*made, f"goto {_label(target)};"]) + " }"

    def _instruction(self, line: str, block: str) -> None:
        if line.startswith("ret "):
            _, kind, value = line.split()
            self._lines.append(f"return {self._value(value, kind)};")
        elif line.startswith("br i1 "):
            condition, then, otherwise = re.findall(r"[%\w.]+", line[6:])[:1] + re.findall(
                r"label %([\w.]+)", line
            )
            test = self._value(condition, "i1")
            self._lines.append(
                f"if ({test}) {self._jump(block, then)} else {self._jump(block, otherwise)}"
            )
        elif line.startswith("br label "):
            self._lines.append(self._jump(block, line.removeprefix("br label %")))
        else:
            name, _, rest = line.removeprefix("%").partition(" = ")
            self._assign(name, rest)

    def _assign(self, name: str, rest: str) -> None:
        opcode, _, given = rest.partition(" ")
        if opcode in ("fcmp", "icmp"):
            found = re.match(r"(\w+) (\S+) (\S+), (\S+)", given)
            assert found is not None, rest
            how, kind, a, b = found.groups()
            self._set(name, "i1", self._comparison(opcode, how, kind, a, b))
        elif opcode == "select":
            found = re.match(r"i1 (\S+), (\S+) (\S+), \S+ (\S+)", given)
            assert found is not None, rest
            condition, kind, a, b = found.groups()
            values = [self._value(condition, "i1"), self._value(a, kind), self._value(b, kind)]
            self._set(name, kind, "{} ? {} : {}".format(*values))
        elif opcode == "call":
            self._call(name, given)
        elif opcode == "fneg":
            kind, a = given.split()
            self._set(name, kind, f"-{self._value(a, kind)}")
        elif " to " in given:
            kind, a, _, to = given.split()
            self._set(name, to, self._converted(opcode, kind, self._value(a, kind), to))
        else:
            found = re.match(r"(?:(?:nsw|nuw|exact|disjoint) )*(\S+) (\S+), (\S+)", given)
            assert found is not None, rest
            kind, a, b = found.groups()
            x, y = self._value(a, kind), self._value(b, kind)
            self._set(name, kind, self._binary(opcode, kind, x, y))

    def _binary(self, opcode: str, kind: str, a: str, b: str) -> str:
        if opcode in _BINARY:
            return f"{a} {_BINARY[opcode]} {b}"
        if opcode == "frem":
            return f"tj_fmod({a}, {b})"
        if kind in _WIDE:
            signs = {**_WRAPPING, **_UNSIGNED_OPERATIONS}
            return f"{a} {signs[opcode]} {b}"
        if kind == "i1" and opcode in ("and", "or", "xor"):
            return f"{a} {_WRAPPING[opcode]} {b}"
        if opcode in _SIGNED_OPERATIONS:
            return f"({_c(kind)})({a} {_SIGNED_OPERATIONS[opcode]} {b})"
        sign = {**_WRAPPING, **_UNSIGNED_OPERATIONS}.get(opcode)
        if sign is None:
            raise CompilationError(f"cuda: no CUDA C for LLVM's {opcode}")
        unsigned = _UNSIGNED[kind]
        return f"({_c(kind)})(({unsigned}){a} {sign} ({unsigned}){b})"

    def _comparison(self, opcode: str, how: str, kind: str, a: str, b: str) -> str:
        x, y = self._value(a, kind), self._value(b, kind)
        if opcode == "icmp":
            sign = _INTEGERS.get(how) or _INTEGERS[how[1:]]
            if how[0] == "u" and kind not in _WIDE:
                x, y = (f"({_UNSIGNED[kind]}){v}" for v in (x, y))
            return f"{x} {sign} {y}"
        if how in _ORDERED:
            return f"{x} {_ORDERED[how]} {y}"
        if how == "une":
            return f"{x} != {y}"
        if how == "one":
            return f"({x} < {y}) || ({x} > {y})"
        if how in ("uno", "ord"):
            nan = f"(({x} != {x}) || ({y} != {y}))"
            return nan if how == "uno" else f"!{nan}"
        opposite = {"ult": ">=", "ule": ">", "ugt": "<=", "uge": "<"}
        if how in opposite:
            return f"!({x} {opposite[how]} {y})"
        if how == "ueq":
            return f"!(({x} < {y}) || ({x} > {y}))"
        raise CompilationError(f"cuda: no CUDA C for LLVM's fcmp {how}")

    def _converted(self, opcode: str, kind: str, value: str, to: str) -> str:
        if opcode == "bitcast":
            return f"tj_bits<{_c(to)}>({value})" if kind != to else value
        if opcode == "fptrunc" and to == "half":
            return f"tj_float_to_half({value})"
        if opcode == "fpext" and kind == "half":
            return f"tj_half_to_float({value})"
        if opcode in ("zext", "uitofp"):
            source = "bool" if kind == "i1" else _UNSIGNED[kind]
            return f"({_c(to)})({source}){value}"
        if opcode == "sext" and kind == "i1":
            return f"({_c(to)})-(int){value}"
        if opcode == "trunc" and to == "i1":
            return f"({value} & 1) != 0"
        if opcode == "fptoui":
            return f"({_c(to)})({_UNSIGNED[to]}){value}"
        return f"({_c(to)}){value}"

    def _call(self, name: str, given: str) -> None:
        found = re.match(r"(\S+) @llvm\.([a-z.]+?)(?:\.[fi]\d+)*\((.*)\)", given)
        if found is None:
            raise CompilationError(f"cuda: no CUDA C for the call {given}")
        kind, intrinsic, arguments = found.groups()
        values = []
        for argument in arguments.split(", "):
            words = argument.split()
            values.append(self._value(words[-1], words[0]))
        if intrinsic in ("ctlz", "cttz", "abs"):
            values = values[:1]
        unsigned = {"umax": "tj_larger", "umin": "tj_smaller"}
        if intrinsic in unsigned:
            made = ", ".join(f"({_UNSIGNED[kind]}){value}" for value in values)
            self._set(name, kind, f"({_c(kind)}){unsigned[intrinsic]}({made})")
            return
        function = _INTRINSICS.get(intrinsic)
        if function is None:
            raise CompilationError(f"cuda: no CUDA C for LLVM's {intrinsic}")
        self._set(name, kind, f"{function}({', '.join(values)})")


def _c(kind: str) -> str:
    found = C_TYPES.get(kind) or _WIDE.get(kind)
    if found is None:
        raise CompilationError(f"cuda: no CUDA C for LLVM's type {kind}")
    return found


def _name(name: str) -> str:
    return "v_" + name.replace(".", "_")


def _label(block: str) -> str:
    return "at_" + block.replace(".", "_")


def _float(text: str, kind: str) -> str:
    """LLVM writes floats of both widths by the bits of the double."""
    bits = int(text, 16)
    if kind == "double":
        return f"tj_bits<double>({bits}ull)"
    sign, exponent, fraction = bits >> 63, bits >> 52 & 0x7FF, bits & ((1 << 52) - 1)
    if exponent == 0x7FF:
        single = sign << 31 | 0x7F800000 | fraction >> 29
        return f"tj_bits<float>({single}u)"
    return f"tj_bits<float>({_single(bits)}u)"


def _single(bits: int) -> int:
    number = struct.unpack("d", struct.pack("Q", bits))[0]
    (single,) = struct.unpack("I", struct.pack("f", number))
    return int(single)


def device_function(text: str) -> str:
    """The device function of the same name that computes what LLVM's ``text`` does.

    Raises `CompilationError` for an instruction that has no translation.
    """
    return Translator(text).text()
