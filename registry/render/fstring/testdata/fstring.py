"""Writes fstring.json: what Python itself makes of the texts below. Run it with Python 3.10 or newer.

Each case is [text, what str.format gives]; null means that Python raises. The tables
follow the chapters "Format String Syntax" and "Format Specification Mini-Language" of Python's documentation.
"""
import json

variables = {
    "s": "text", "e": "", "q": "it's", "d": 'say "hi"', "b": "both ' and \"", "u": "ü猫🐈", "c": "a\tb\nc\\d\r\x00\x7f\u200b\xa0\xad",
    "i": 42, "n": -1234567, "z": 0, "big": 123456789012345678901234567890, "f": 3.14159, "g": -0.5, "h": 1e16, "k": 1.5e-7, "o": 100.0,
    "t": True, "x": False, "none": None, "l": [1, "a", None, 2.5, True, [], {}], "m": {"k": "v", "n": {"deep": [10, 20]}},
    "w": 10, "p": 3, "a": ">", "tiny": 0.0001, "small": 0.00001, "negzero": -0.0, "m2": 1234.5678, "huge": 1e300, "one": 1.0,
}
texts = [
    "", "plain", "{s}", "a{s}b{s}c", "{{}}", "{{{s}}}", "{{s}}", "}}{{", "{s}}}", "{{{{", "{", "}", "{s", "s}", "{s}}", "{{s}", "{}", "{0}", "{s!}", "{s!x}", "{s!rr}",
    "{s!r", "{s:{w}", "{s:}}", "{s!r}", "{q!r}", "{d!r}", "{b!r}", "{u!r}", "{u!a}", "{c!r}", "{c!a}", "{s!s}", "{i!r}", "{none}", "{t}", "{x}", "{none!r}",
    "{l}", "{m}", "{l!s}", "{l!a}", "{m!r:>40}", "{l[1]}", "{l[5]}", "{m[k]}", "{m[n]}", "{m[n][deep]}", "{m[n][deep][1]}", "{l[", "{l[]}", "{l[0}", "{l[0]x}",
    "{m[k]!r:>8}", "{big}", "{f}", "{g}", "{h}", "{k}", "{o}", "{tiny}", "{small}", "{negzero}", "{huge}", "{one}",
    "{s:10}", "{s:<10}|", "{s:>10}", "{s:^10}|", "{s:*^11}", "{s:=10}", "{s:010}", "{s:.2}", "{s:10.2}|", "{s:s}", "{s:d}", "{s:+}", "{s:,}", "{s:.}", "{s:猫>8}", "{u:5}|", "{u:.1}",
    "{s:{w}}|", "{s:{a}{w}}", "{s:{a}{w}.{p}}", "{s:{e}}", "{s:{w}{e}}|", "{s:{w:{p}}}", "{i:{w}}", "{i:0{w}}", "{f:.{p}f}", "{s:{{<6}", "{s:}<6}", "{s:x}", "{s:{{}}}", "{s:\n}", '{"a": 1}', "{'a'}", "{ s}", "{s }",
    "{i:d}", "{i:5}|", "{i:<5}|", "{i:^5}|", "{i:05}", "{i:+}", "{i: }", "{i:-}", "{i:x}", "{i:X}", "{i:#x}", "{i:#X}", "{i:#o}", "{i:#b}", "{i:b}", "{i:o}", "{i:c}", "{i:5c}|", "{i:+c}",
    "{i:#010x}", "{i:e}", "{i:.2f}", "{i:%}", "{i:g}", "{i:n}", "{i:.3}", "{i:s}", "{i:z}", "{n:,}", "{n:_}", "{n:012,}", "{n:013,}", "{n:014,}", "{n:<15,}|", "{n:=+15,}", "{n:0=15,}", "{n:x}", "{n:#_x}", "{n:_b}",
    "{n:,x}", "{n:,n}", "{n:+d}", "{n:010d}", "{big:,}", "{big:x}", "{big:e}", "{z:+}", "{z:-5}|", "{z:05,}",
    "{f:f}", "{f:.0f}", "{f:#.0f}", "{f:.2f}", "{f:10.2f}", "{f:<10.2f}|", "{f:010.2f}", "{f:+.2f}", "{f:e}", "{f:.2E}", "{f:g}", "{f:.2g}", "{f:G}", "{f:n}", "{f:%}", "{f:.1%}", "{f:.3}", "{f:.1}", "{f:.0}", "{f:10}|", "{f:d}", "{f:x}", "{f:c}",
    "{g:+}", "{g:06}", "{g:.0f}", "{h:.3}", "{h:f}", "{h:,}", "{h:g}", "{h:.20g}", "{k:f}", "{k:g}", "{k:.3}", "{o:.3}", "{o:.4}", "{o:g}", "{o:#g}", "{o:.10}", "{o:,.2f}", "{m2:,.2f}", "{m2:_}", "{m2:015,.2f}", "{m2:e}", "{m2:.2}", "{m2:.5}",
    "{tiny:.3}", "{small:.3}", "{small:g}", "{negzero:f}", "{negzero:+}", "{huge:g}", "{huge:.3}", "{one:.1}", "{one:.2}", "{one:g}", "{one:G}", "{m2:,.3}", "{m2:09,.1f}", "{m2:%}",
    "{t:d}", "{t:5}|", "{t:s}", "{t:.1f}", "{x:+}", "{t!s:>6}", "{none:5}", "{none!s:>6}", "{l:5}", "{m:>5}", "{l!s:.4}", "{i!s:>5}", "{i!r:05}", "{f!s:.3}",
]


def python(text):
    try:
        return text.format(**variables)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        return None


cases = ",\n".join(json.dumps([t, python(t)], ensure_ascii=True) for t in texts)
with open(__file__.replace(".py", ".json"), "w", encoding="utf-8") as f:
    f.write('{"variables": %s,\n"cases": [\n%s\n]}\n' % (json.dumps(variables), cases))
