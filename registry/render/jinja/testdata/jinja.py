"""Writes jinja.json: what Jinja itself makes of the texts below. Run it with Python 3.10 or newer and Jinja 3.1.

Each case is [text, what Template.render gives]; null means that Jinja raises. The texts follow the chapters of "Template Designer
Documentation", in its order.
"""
import json

import jinja2

variables = {
    "s": "hello world", "e": "", "u": "Ünïcode 猫🐈", "html": "<b>\"it's\" & x</b>", "ml": "one\ntwo\n\nthree", "i": 42, "n": -7, "z": 0, "f": 3.14159, "big": 123456789012345678901234567890,
    "t": True, "x": False, "none": None, "l": [3, 1, 2], "ls": ["b", "A", "c"], "m": {"b": 1, "a": [1, {"k": "v"}], "items": 5}, "deep": [[1, [2, 3]], []],
    "users": [{"name": "Ann", "age": 30, "city": {"name": "Rome"}}, {"name": "bob", "age": 25, "city": {"name": "Oslo"}}, {"name": "Cid", "age": 30}],
    "long": "The quick brown fox jumps over the lazy dog and runs away from supercalifragilisticexpialidocious things",
    "pairs": [["a", 1], ["b", 2]], "floats": [0.5, 1.25, -2.0], "crlf": "a\r\nb",
}
texts = r"""
plain
{{ s }}|{{ e }}|{{ u }}|{{ i }}|{{ n }}|{{ f }}|{{ big }}|{{ t }}|{{ x }}|{{ none }}
{{ l }}|{{ m }}|{{ deep }}|{{ users[0] }}|{{ html }}
{{ gone }}|{{ gone.x }}|{{ gone.x.y }}|{{ m.gone }}|{{ l[9] }}|{{ gone['a'] }}
{{ m.b }}{{ m['b'] }}{{ m.a[1].k }}{{ m['a'][1]['k'] }}{{ l.0 }}{{ l[-1] }}{{ s[0] }}{{ u[-1] }}
{{ l[1:] }}{{ l[:2] }}{{ l[::-1] }}{{ l[:-1] }}{{ s[2:5] }}{{ u[:3] }}{{ l[5:] }}{{ l[-2:] }}{{ s[-3:-1] }}{{ l[none:2] }}
{# a comment #}a{# {{ s }} {% if %} #}b
{% raw %}{{ s }}{% if %}{% endraw %}|{%- raw -%} {{ x }} {%- endraw -%} |
a  {%- if t -%}  b  {%- endif -%}  c
a {{- s -}} b {{- ' x ' -}} c
a {#- note -#} b
a {%+ if t +%} b {% endif %}
{{ "{{" }} {{ '}}' }} {{ {'a': {'b': 1}}['a']['b'] }} {{ "%}" }}
{{ {} }}{{ [] }}{{ () }}{{ (1,) }}{{ (1, 2) }}{{ {'a': 1, 2: 'b', } }}{{ [1, [2], 'x'] }}
{{ 1, 2 }}
{{ 'a\n\t\x41\u00fc\\\'"' }} {{ "it's" }} {{ 'a' 'b' }}
{{ 1000 }} {{ 1500.0 }} {{ 0.0000001 }} {{ 2.0 }} {{ 10000000000000000.0 }}
{{ 1 + 2 }} {{ 5 - 7 }} {{ 2 * 3 }} {{ 7 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }}
{{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 1.5 + 1 }} {{ 10 / 5 }} {{ 3 * 1.0 }} {{ 0.1 + 0.2 }} {{ true + true }}
{{ 1 + 2 * 3 }} {{ (1 + 2) * 3 }} {{ 2 * -3 }} {{ - - 3 }} {{ +4 }} {{ -1|abs }}
{{ 'a' * 3 }} {{ 3 * 'ab' }} {{ 'a' + 'b' }} {{ [1] + [2] }} {{ 'x' * -1 }}
{{ 'a' ~ 1 ~ none ~ 2.5 ~ l }} {{ 1 ~ 2 * 3 }} {{ 1 + 2 ~ 3 }}
{{ 1 / 0 }}
{{ 1 // 0 }}
{{ 1 % 0 }}
{{ 1 + 'a' }}
{{ 'a' + 1 }}
{{ [] + 1 }}
{{ none + 1 }}
{{ 1 == 1.0 }} {{ 1 == '1' }} {{ 'a' == 'a' }} {{ [1, 2] == [1, 2] }} {{ {'a': 1} == {'a': 1.0} }} {{ none == false }} {{ true == 1 }} {{ 1 != 2 }} {{ [1] == (1,) }}
{{ 1 < 2 }} {{ 2 <= 2 }} {{ 3 > 4 }} {{ 4 >= 4 }} {{ 'a' < 'b' }} {{ 1.5 > 1 }}
{{ 1 < 'a' }}
{{ none < 1 }}
{{ {} < {} }}
{{ 1 in l }} {{ 9 in l }} {{ 'ell' in s }} {{ 'b' in m }} {{ 'z' not in m }} {{ not 1 in l }} {{ 1 not in l }} {{ [2, 3] in deep[0] }}
{{ 1 in s }}
{{ 1 in 5 }}
{{ t and x }} {{ t or x }} {{ not t }} {{ 0 or 'a' }} {{ 1 and 'b' }} {{ '' or [] or none }} {{ not not 1 }} {{ t and not x or x }}
{{ 'a' if t else 'b' }} {{ 'a' if x else 'b' }} {{ 'a' if x }}| {{ 'a' if x else 'b' if t else 'c' }} {{ ('y' if gone else 'n') }}
{% if t %}a{% endif %}{% if x %}b{% elif t %}c{% else %}d{% endif %}{% if x %}b{% elif none %}c{% elif 0 %}e{% else %}d{% endif %}
{% if l and m and s and i %}full{% endif %}{% if [] or {} or '' or 0 or 0.0 or none or gone %}{% else %}empty{% endif %}
{% for a in l %}{{ a }},{% endfor %}|{% for a in [] %}x{% else %}none{% endfor %}|{% for c in 'abc' %}{{ c }}.{% endfor %}|{% for k in m %}{{ k }} {% endfor %}|{% for q in gone %}x{% else %}e{% endfor %}
{% for a in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}
{% for k, v in m.items() %}{{ k }}={{ v }};{% endfor %}{% for k, v in m|items %}{{ k }}{% endfor %}{% for k, v in pairs %}{{ k }}{{ v }}{% endfor %}{% for (k, v) in pairs %}{{ k }}{% endfor %}
{% for k, v in l %}{% endfor %}
{% for a in l if a > 1 %}{{ a }}{{ loop.length }}{% else %}none{% endfor %}{% for a in l if a > 9 %}{{ a }}{% else %}none{% endfor %}
{% for a in deep %}{% for b in a %}{{ loop.index }}{{ b }};{% endfor %}|{{ loop.index }}{% endfor %}
{% for u in users %}{{ u.name }} ({{ u.age }}){% if u.city %} in {{ u.city.name }}{% endif %}{{ ", " if not loop.last }}{% endfor %}
{% for i in 5 %}{% endfor %}
{% for i in range(3) %}{{ i }}{% endfor %}{{ range(2, 8, 3)|list }}{{ range(5, 0, -2)|list }}{{ range(0)|list }}{{ range(4)|length }}
{% set a = 1 %}{{ a }}{% set a, b = 2, 3 %}{{ a }}{{ b }}{% set c %}x{{ a }}y{% endset %}{{ c }}{% set d | upper %}low{% endset %}{{ d }}{% set (g, h) = pairs[0] %}{{ g }}{{ h }}
{% set a = 1 %}{% for q in l %}{% set a = q %}{{ a }}{% endfor %}{{ a }}{% if t %}{% set a = 5 %}{% endif %}{{ a }}
{% set ns = namespace(n=0, found=false) %}{% for q in l %}{% set ns.n = ns.n + q %}{% endfor %}{{ ns.n }}{{ ns.found }}{% set ns.found = true %}{{ ns.found }}{{ ns['n'] }}
{% set m2 = dict(a=1, b=2) %}{{ m2 }}{{ m2.a }}{{ dict(m2, c=3) }}
{{ n|abs }}{{ -1.5|abs }}
{{ s|capitalize }}|{{ 'HELLO wORLD'|capitalize }}
{{ gone|default('d') }}{{ e|default('d') }}{{ e|default('d', true) }}{{ none|d('x') }}{{ none|d('x', boolean=true) }}{{ gone|d }}{{ m.gone|default(5) }}{{ gone.a.b|default('deep') }}
{{ m|dictsort }}|{{ {'b': 2, 'A': 3, 'c': 1}|dictsort }}|{{ {'b': 2, 'A': 3}|dictsort(true) }}|{{ {'b': 2, 'A': 3}|dictsort(false, 'value') }}|{{ {'b': 2, 'A': 3}|dictsort(reverse=true) }}
{{ l|first }}{{ l|last }}{{ s|first }}{{ s|last }}{{ []|first }}|{{ []|last }}{{ gone|first }}
{{ '3.5'|float }} {{ 'x'|float }} {{ 'x'|float(1.5) }} {{ 3|float }} {{ '1e3'|float }} {{ none|float }}
{{ '42'|int }} {{ '42.9'|int }} {{ 'x'|int }} {{ 'x'|int(7) }} {{ 3.9|int }} {{ -3.9|int }} {{ true|int }} {{ none|int(5) }} {{ ' 12 '|int }}
{{ "%s, %s!"|format("Hi", "you") }} {{ "%d %5.2f %05d %%"|format(3, 2.5, 42) }} {{ "%-5s|%5s|%.2s"|format("a", "b", "cde") }} {{ "%0.1f %d"|format(true, 1.9) }}
{{ "%d"|format("x") }}
{{ ml|indent }}|{{ ml|indent(2) }}|{{ ml|indent(2, true) }}|{{ ml|indent(2, true, true) }}|{{ ml|indent('> ', first=true) }}|{{ ml|indent(width=3, blank=true) }}
{{ l|join }}|{{ l|join(', ') }}|{{ users|join(', ', attribute='name') }}|{{ 'abc'|join('-') }}|{{ [1, none, 'x']|join('/') }}|{{ gone|join(',') }}
{{ l|length }}{{ s|length }}{{ u|length }}{{ m|length }}{{ ''|count }}{{ gone|length }}
{{ 5|length }}
{{ 'abc'|list }}{{ m|list }}{{ l|list }}
{{ 'ABC Ü'|lower }}{{ u|upper }}{{ 'straße'|upper }}
{{ users|map(attribute='name')|join(',') }}|{{ ls|map('upper')|join(',') }}|{{ ls|map('replace', 'b', 'x')|list }}|{{ l|map('default')|list }}
{{ l|max }}{{ l|min }}{{ ls|max }}{{ ls|min }}{{ ls|min(true) }}{{ (users|max(attribute='age')).name }}{{ (users|min(attribute='age')).name }}{{ []|max }}|{{ floats|max }}
{{ l|select|list }}{{ l|select('gt', 1)|list }}{{ l|select('>', 1)|list }}{{ [0, 1, '', none]|reject|list }}{{ l|select('in', [1, 2])|list }}
{{ users|selectattr('city')|map(attribute='name')|list }}{{ users|rejectattr('city')|map(attribute='name')|list }}{{ users|selectattr('age', 'equalto', 30)|map(attribute='name')|list }}{{ users|selectattr('city.name', 'eq', 'Rome')|map(attribute='name')|list }}{{ users|rejectattr('age', 'lt', 30)|list|length }}{{ users|selectattr('city', 'defined')|list|length }}
{{ s|replace('l', 'L') }}{{ s|replace('l', 'L', 1) }}{{ s|replace('zz', 'x') }}{{ 'aaa'|replace('a', 'bb') }}{{ 'ab'|replace('', '-') }}{{ i|replace('4', '5') }}
{{ l|reverse|list }}{{ s|reverse }}{{ u|reverse }}
{{ 42.55|round }} {{ 42.55|round(1) }} {{ 42.55|round(1, 'floor') }} {{ 42.1|round(0, 'ceil') }} {{ 42|round }} {{ 2.5|round }} {{ 3.5|round }} {{ 1234.5|round(-2) }} {{ 2.675|round(2) }} {{ 42.7|round|int }}
{{ html|safe }}{{ l|string }}{{ 1|string|length }}
{{ l|sort }}{{ ls|sort }}{{ ls|sort(case_sensitive=true) }}{{ l|sort(reverse=true) }}{{ l|sort(true) }}{{ users|sort(attribute='age')|map(attribute='name')|list }}{{ m|sort }}{{ 'cab'|sort }}
{{ [1, 'a']|sort }}
{{ s|title }}|{{ "it's a dog-eared (big) [box]"|title }}|{{ 'HELLO'|title }}
{{ m|tojson }}|{{ html|tojson }}|{{ u|tojson }}|{{ l|tojson }}|{{ none|tojson }}|{{ f|tojson }}|{{ t|tojson }}|{{ 'a\n\t/\\'|tojson }}|{{ {}|tojson }}|{{ []|tojson(indent=2) }}
{{ m|tojson(indent=2) }}|{{ l|tojson(2) }}
{{ '  a b  '|trim }}|{{ 'xxaxx'|trim('x') }}|{{ ml|trim }}
{{ long|truncate(20) }}|{{ long|truncate(20, true) }}|{{ long|truncate(20, true, '…') }}|{{ s|truncate(9) }}|{{ s|truncate(5, leeway=0) }}|{{ s|truncate(255) }}|{{ long|truncate(30, false, '', 0) }}
{{ ['a', 'A', 'b']|unique|list }}{{ ['a', 'A', 'b']|unique(true)|list }}{{ users|unique(attribute='age')|map(attribute='name')|list }}{{ [1, 1.0, true, 2]|unique|list }}
{{ i is defined }}{{ gone is defined }}{{ gone is undefined }}{{ gone is not defined }}{{ m.gone is defined }}{{ none is none }}{{ i is none }}{{ i is not none }}
{{ i is number }}{{ f is float }}{{ i is integer }}{{ t is integer }}{{ t is number }}{{ t is boolean }}{{ i is boolean }}{{ f is integer }}
{{ s is string }}{{ i is string }}{{ l is iterable }}{{ s is iterable }}{{ i is iterable }}{{ l is sequence }}{{ m is mapping }}{{ l is mapping }}{{ m is sequence }}{{ t is true }}{{ x is false }}{{ 1 is true }}
{{ i is eq 42 }}{{ i is equalto(42) }}{{ i is ne 1 }}{{ i is gt 3 }}{{ i is ge 42 }}{{ i is lt 3 }}{{ i is le 42 }}{{ 1 is in l }}{{ 5 is in(l) }}
{{ 'a' if i is defined else 'b' }}{{ not i is defined }}{{ i is defined and s is string }}{{ i is not string }}
{{ s.upper() }}{{ 'ABC'.lower() }}{{ s.title() }}{{ s.capitalize() }}{{ ' x '.strip() }}{{ 'xax'.strip('x') }}{{ ' x '.lstrip() }}|{{ ' x '.rstrip() }}|
{{ 'a,b,c'.split(',') }}{{ 'a,b,c'.split(',', 1) }}{{ ' a  b '.split() }}{{ 'a b c'.split(none, 1) }}{{ ml.splitlines() }}{{ ''.split() }}{{ ''.split(',') }}
{{ s.replace('o', '0') }}{{ s.replace('o', '0', 1) }}{{ s.startswith('he') }}{{ s.endswith('x') }}{{ s.startswith(('x', 'h')) }}{{ s.find('o') }}{{ s.find('z') }}{{ s.rfind('o') }}{{ s.index('w') }}{{ u.find('猫') }}
{{ ','.join(ls) }}
{{ m.get('b') }}{{ m.get('zz') }}{{ m.get('zz', 'd') }}{{ m.keys()|list }}{{ m.values()|list }}{{ m.items()|list }}{{ m['items'] }}{{ l.index(1) }}
{{ s|upper|replace('O', '0')|length }}{{ (s ~ '!')|title }}{{ l|map('string')|join('+') }}{{ s | upper }}
{{ crlf }}|{{ 'x' }}
line one{{ '\n' }}line two
{{ s }}{{
  i
}}{%
if t
%}x{% endif %}
{% if x %}{% else %}{% endif %}{% for a in l %}{% if a == 1 %}{% else %}{{ a }}{% endif %}{% endfor %}
{{ s
{{ s }} {% if t %}
{% endif %}
{% if t %}{% endfor %}
{{ }}
{{ 1 + }}
{{ 'a }}
{{ a b }}
{{ (1 }}
{{ 1) }}
{{ [1, 2 }}
{% for a l %}{% endfor %}
{% set 1 = 2 %}
{% set none = 2 %}
{# open
{% raw %} open
{{ a..b }}
{{ |upper }}
{{ s| }}
{{ s is }}
{% %}
{{ 'a' ~ }}
{{ loop }}{{ super }}
{{ {}|first }}
{{ s.split('') }}
{{ range(1, 2, 0)|list }}
{{ s[::0] }}
{{ deep|map('length')|list }}{{ [[3, 'c'], [1, 'a']]|map(attribute=0)|list }}{{ users|map(attribute='name')|map('lower')|select('ne', 'bob')|list }}
{%- for a in l -%} {{ a }} {%- if not loop.last -%} , {%- endif -%} {%- endfor -%}
a{{ "" }} {%- set y = 1 %} b{{ y }}
{% for x in [1,2] %}{% set y = x %}{% endfor %}{{ y }}{{ x }}
{% set a = [] %}{{ 'yes' if a else 'no' }}{{ a|length == 0 }}{{ a|length > 0 and a[0] }}
{{ 9000000000 * 9000000000 }}
{{ big + 1 }}
{% macro f(a, b=1, c='x' ~ a) %}{{ a }}-{{ b }}-{{ c }};{% endmacro %}{{ f(1) }}{{ f(1, 2) }}{{ f(b=3, a=4) }}{{ f(1, 2, 3) }}{{ f() }}{{ f(l, c=none)|upper }}{{ f(1) ~ f(2) }}|{{ f(1)|length }}
{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}
{% macro f(a) %}{{ a }}{% endmacro %}{{ f(b=2) }}
{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, a=2) }}
{% macro f(a, b=a, c=b) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ f(1) }}{{ f(1, 2) }}{{ f(1, c=3) }}
{% macro f(a=i) %}{{ a }}{% set i = 1 %}{{ i }}{% endmacro %}{{ f() }}{{ i }}{{ f(none) }}
{% macro f(a=a) %}{{ a }}{% endmacro %}{% set a = 9 %}{{ f() }}|
{% macro f(a=b, b=1) %}{{ a }}{{ b }}{% endmacro %}{% set b = 9 %}{{ f() }}|
{% set y = 1 %}{% macro f() %}{{ y }}{{ s }}{% endmacro %}{{ f() }}{% set y = 2 %}{{ f() }}{% for y in [5] %}{{ f() }}{% endfor %}
{% macro f(n) %}{{ n }}{% if n %}, {{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}
{% macro even(n) %}{% if n == 0 %}even{% else %}{{ odd(n - 1) }}{% endif %}{% endmacro %}{% macro odd(n) %}{% if n == 0 %}odd{% else %}{{ even(n - 1) }}{% endif %}{% endmacro %}{{ even(7) }}
{{ f(1) }}{% macro f(a) %}{{ a }}{% endmacro %}
{% macro tree(items) %}<ul>{% for x in items %}<li>{% if x is iterable and x is not string %}{{ tree(x) }}{% else %}{{ x }}{% endif %}</li>{% endfor %}</ul>{% endmacro %}{{ tree(deep) }}
{% macro f() %}x{% endmacro %}{{ f() }}
{% macro f(a) %}{{ a }}{% endmacro %}{% set g = f %}{{ g(1) }}{{ f }}
{% macro f(g) %}{{ g(2) }}{% endmacro %}{% macro h(a) %}h{{ a }}{% endmacro %}{{ f(h) }}
{% macro f(a) %}{{ a }}{% endmacro %}{% set g = 1 %}{{ g(1) }}
{% macro f(a) %}{{ a }}{% endmacro %}{{ gone(1) }}
{% if t %}{% macro f() %}yes{% endmacro %}{% endif %}{{ f() }}
{% if x %}{% macro f() %}yes{% endmacro %}{% endif %}{{ f() }}
{% for a in l %}{% macro f() %}{{ a }}{{ loop is defined }}{% endmacro %}{{ f() }}{% endfor %}
{% for a in l %}{% macro f() %}{{ a }}{% endmacro %}{% endfor %}{{ f() }}
{% macro f() %}{% macro g() %}inner{% endmacro %}{{ g() }}{% endmacro %}{{ f() }}
{% macro f(a) -%}  x{{ a }}  {%- endmacro %}a{{ f(1) }}b
{% macro f(x, y=2, z) %}{% endmacro %}
{% macro f(x,) %}{% endmacro %}
{% macro f %}{% endmacro %}
{% macro f() %}
{% macro true() %}{% endmacro %}
{% macro f() %}a{% endmacro f %}
{% macro range(a) %}mine{{ a }}{% endmacro %}{{ range(3) }}
{{ m|tojson }}{% macro f(m) %}{{ m|tojson }}{% endmacro %}{{ f({'a': 1}) }}
{% set out %}{% macro f(a) %}x{{ a }}{% endmacro %}{{ f('y') }}{% endset %}{{ out }}
""".strip("\n").split("\n")
# Texts with line breaks of their own stand apart.
texts = [t for t in texts if t] + ["a\n", "a\n\n", "\n", "", "{{ s }}\n", "a\r\nb\r\n", "{% if t %}\nx\n{% endif %}\ny", "{% if t -%}\n  x\n{%- endif %}\n\ny\n", "{# c #}\nx", "{% raw %}\n{{ x }}\n{% endraw %}\n",
    "- {% for a in l %}\n  * {{ a }}\n{% endfor %}end", "{{ s\n| upper\n}}\n{% set q = 'a\nb' %}{{ q }}", "{% for u in users -%}\n{{ loop.index }}. {{ u.name }}\n{% endfor -%}\nend"]

environment = jinja2.Environment(undefined=jinja2.ChainableUndefined)


def render(text):
    try:
        return environment.from_string(text).render(**variables)
    except (jinja2.TemplateError, ValueError, TypeError, ArithmeticError, AttributeError, IndexError):
        return None


cases = ",\n".join(json.dumps([t, render(t)], ensure_ascii=True) for t in texts)
with open(__file__.replace(".py", ".json"), "w", encoding="utf-8") as f:
    f.write('{"variables": %s,\n"cases": [\n%s\n]}\n' % (json.dumps(variables), cases))
