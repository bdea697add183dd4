#!/usr/bin/env python3
"""What jinja2 makes of small templates: the goldens of tests/tokenizer/jinja_test.cc.

  make_jinja_goldens.py > tests/tokenizer/golden/jinja.json

The environment is transformers' (see render_templates.py). A row is {source, expected} or {source, error}: where
jinja2 fails the interpreter must fail too, with words of its own.
"""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
from render_templates import environment

VARIABLES = {
    "s": "Hello, World", "u": "Größe ΑΒΓ жук 日本 😀", "e": "", "sp": "  \t two  words \n", "lines": "a\nb\r\n\nc", "q": "it's \"q\" \\ \n\t\x01é\u200b",
    "n": 7, "m": -3, "z": 0, "f": 2.5, "big": 1e20, "tiny": 1.5e-7, "t": True, "no": False, "nil": None,
    "l": [3, 1, 2], "ls": ["b", "A", "c", "a"], "el": [], "mixed": [1, "x", None, True, 2.0, [1, {"k": "v"}]],
    "d": {"b": 1, "a": "two", "items": 5, "C": None}, "ed": {},
    "users": [{"name": "Ann", "age": 30, "tags": {"x": 1}}, {"name": "bob", "age": 25, "tags": {"x": 2}}, {"name": "Cy", "age": 41}],
}

# One expression a line.
EXPRESSIONS = r"""
s
u
nil
t
no
n
f
big
tiny
mixed
d
ed
el
q
[q]
[u]
(1,)
()
(1, 2)
{'a': [1, (2, 3)], 1: none, true: false}
missing
missing.x
missing['x']
missing()
missing + 1
missing + 'a'
missing ~ 'a'
missing == missing2
missing == none
missing is defined
missing is undefined
not missing
missing or 'x'
missing and 'x'
missing | length
missing | list
missing | string
missing | upper
missing | trim
missing | default('x')
missing | d
missing | join(',')
missing | tojson
missing | int
missing | first
missing | items | list
missing in l
missing in s
'a' in missing
missing[0]
missing[1:]
missing < 1
d.zzz
d.zzz.y
d['zzz'] is defined
nil.x
nil.x is defined
nil.x.y
nil['x']
nil()
l.x
l[7]
l[7] is defined
l['x']
s.x
s[0]
s[-1]
s[99]
u[2]
u[14]
u[::-1]
u | length
s[1:4]
s[:-3]
s[-3:]
s[::2]
s[10:2:-2]
l[::-1]
l[1:]
l[:99]
l[-2:]
l[5:]
(1,2,3)[::-1]
range(5)[1:3] | list
range(5)
range(1, 9, 3) | list
range(9, 1, -3) | list
range(0)|list
range(5) | length
range(3)[1]
d.b
d['b']
d['items']
d.items()
d.keys()
d.values()
d.get('a')
d.get('zz')
d.get('zz', 'dflt')
d.items() | list
d | items | list
d | list
d | length
d | dictsort
d | dictsort(false, 'value')
{'b': 2, 'a': 1} | dictsort(reverse=true)
{'b': 2, 'a': 3} | dictsort(by='value')
d | tojson
d | tojson(indent=2)
mixed | tojson
mixed | tojson(indent=4)
mixed | tojson(separators=(',', ':'))
mixed | tojson(indent=1, separators=(';', '='))
u | tojson
u | tojson(ensure_ascii=true)
q | tojson
q | tojson(true)
[] | tojson(indent=2)
{} | tojson(indent=2)
[[], {}] | tojson(indent=2)
d | tojson(sort_keys=true)
{1: 2, none: 3, true: 4, 1.5: 5} | tojson
big | tojson
tiny | tojson
(1, 2) | tojson
range(3) | tojson
1 + 2
1 + 2 * 3
(1 + 2) * 3
7 // 2
-7 // 2
7 // -2
7 % 3
-7 % 3
7 % -3
7 / 2
6 / 2
2 ** 10
2 ** -1
2 ** 3 ** 2
-2 ** 2
7.5 // 2
-7.5 % 2
7.5 % -2
1 / 0
1 // 0
1 % 0
1.0 / 0
n - m
n + f
f * 2
t + t
t * 3
-t
+n
--n
-n | abs
n + nil
s + n
n + s
s + nil
s * 2
2 * s
s * -1
l * 2
l + [4]
l + (4,)
(1,) + (2,)
s ~ n
s ~ nil ~ l
1 ~ 2 + 3
n ~ n * 2
1e3
1.5e-3
1_000
0.1 + 0.2
1e16
1e15
123456789012345680.0
1e-4
0.00001
100000.0
1 == 1.0
true == 1
'1' == 1
'a' < 'b'
'a' < 1
l < [3, 2]
l == [3, 1, 2]
d == {'b': 1}
none == false
1 < 2 < 3
1 < 3 < 2
3 > 2 >= 2 != 5
1 in l
5 in l
5 not in l
'ell' in s
'' in s
1 in s
'b' in d
1 in d
[1] in l
not 1 in l
1 in n
'x' in 5
nil in l
not t and no
not (t and no)
t or no and no
nil or 0 or ''
'a' and 'b'
0 and 'b'
'yes' if t else 'no'
'yes' if no else 'no'
'yes' if no
('yes' if no) is defined
'a' if no else 'b' if no else 'c'
s is string
n is number
t is number
t is integer
n is integer
f is float
f is integer
nil is none
nil is not none
s is not string
l is sequence
d is sequence
s is sequence
n is sequence
l is iterable
d is mapping
l is mapping
n is iterable
missing is iterable
missing is sequence
missing is string
missing is none
d.items() is sequence
d.items() is iterable
range(2) is sequence
(l | map('string')) is sequence
t is boolean
t is true
no is false
1 is true
n is odd
n is even
n is divisibleby 7
n is divisibleby(2)
n is eq 7
n is equalto(7)
n is gt 3
n is lessthan 3
n is in [7, 8]
'a' is in 'abc'
s is lower
'abc' is lower
'ABC' is upper
'123' is upper
u is upper
range is callable
s is callable
d.get is callable
n is sameas 7
nil is sameas none
'upper' is filter
'zzz' is filter
'odd' is test
s is defined and n is defined
s is string and not n is string
n is not odd
n is odd is true
s | upper
s | lower
u | upper
u | lower
s | title
"it's a (big) well-known x_y" | title
"it's a (big) well-known x_y".title()
u | title
u.title()
'hELLO wORLD' | capitalize
u | capitalize
'straße' | upper
sp | trim
'xxaxx' | trim('x')
s | replace('l', 'L')
s | replace('l', 'L', 1)
s | replace('', '-')
n | replace(7, 8)
s | length
l | length
n | length
nil | length
l | first
l | last
el | first
el | last
s | first
s | last
d | first
l | list
s | list
n | list
l | string
nil | string
n | string | length
'42' | int
'42.7' | int
'x' | int
'x' | int(5)
f | int
m | int
nil | int
l | int
'0x1f' | int(0, 16)
'1f' | int(base=16)
' 42 ' | int
'1_000' | int
'-5' | int
'2.5' | float
'x' | float
'x' | float(1.5)
n | float
nil | float
t | int
l | join
l | join(', ')
ls | join('-')
users | join(', ', attribute='name')
mixed | join('|')
s | join('.')
d | join(',')
n | join(',')
l | sort
ls | sort
ls | sort(case_sensitive=true)
ls | sort(reverse=true)
users | sort(attribute='age') | map(attribute='name') | list
mixed | sort
[1, 2, 1, 3, 2] | unique | list
['a', 'A', 'b'] | unique | list
['a', 'A', 'b'] | unique(true) | list
l | min
l | max
ls | min
ls | max
el | min
users | max(attribute='age')
users | map(attribute='age') | sum
users | sum(attribute='age')
l | sum
l | sum(start=10)
ls | sum
el | sum
l | reverse | list
s | reverse
d | reverse | list
l | map('string') | list
ls | map('upper') | join
l | map('default', 5) | list
users | map(attribute='tags.x') | list
users | map(attribute='tags.x', default='-') | list
users | map(attribute='tags', default={}) | list
users | selectattr('tags') | map(attribute='name') | list
users | selectattr('age', 'gt', 26) | map(attribute='name') | list
users | rejectattr('age', 'gt', 26) | map(attribute='name') | list
users | selectattr('name', 'equalto', 'bob') | list
users | selectattr('zzz', 'defined') | list
users | rejectattr('zzz') | list | length
l | select('odd') | list
l | reject('odd') | list
l | select | list
[0, 1, ''] | reject | list
l | select('gt', 1) | list
l | select('in', [1, 2]) | list
nil | default('x')
nil | default('x', true)
'' | default('x', true)
'' | d('x')
l | batch(2) | list
l | batch(2, 'z') | list
[1,2,3,4,5] | slice(2) | list
[1,2,3,4,5] | slice(3, 'z') | list
f | round
2.567 | round(2)
2.5 | round
3.5 | round
2.1 | round(0, 'ceil')
2.19 | round(1, 'floor')
n | round
7 | round(2)
1234 | round(-2)
m | abs
f | abs
'<a href="x">&\'' | escape
'<b>' | e
'<b>' | safe
lines | indent
lines | indent(2)
lines | indent(2, true)
lines | indent(2, blank=true)
lines | indent('>> ')
'a\n' | indent
'foo bar baz qux' | truncate(9)
'foo bar baz qux' | truncate(9, true)
'foo bar baz qux' | truncate(11)
'foo bar baz qux' | truncate(11, false, '!', 0)
'a b  c-d' | wordcount
'ab' | center(7)
'abc' | center(8)
'abc'.center(8)
'ab'.center(7, '*')
'%s-%d-%05.2f-%x' | format('a', 7, 2.5, 255)
'%s and %r' % ('a', 'b')
'%5s|%-5s|%%' % ('a', 'b')
'%s' % l
'%+d %05d' % (5, -42)
'%s' % (1, 2)
'%d' % 'x'
'%g %e' % (0.0001, 12345.678)
'{} {}'.format(1, 'x')
'{1} {0} {{}}'.format(1, 2)
'{a}'.format(a=5)
s.upper()
s.lower()
s.strip('Hd')
sp.strip()
sp.lstrip()
sp.rstrip()
'xyxabcyx'.strip('xy')
'xyxabcyx'.lstrip('xy')
'xyxabcyx'.rstrip('yx')
'ßaß'.strip('ß')
s.split(', ')
s.split()
sp.split()
'a,b,c'.split(',')
'a,b,c'.split(',', 1)
'a,b,c'.rsplit(',', 1)
'a,b,c'.split(',', maxsplit=1)
'a b  c d '.split(none, 2)
' a b  c d '.rsplit(none, 2)
'a b c'.split(maxsplit=1)
''.split()
''.split(',')
'aXbX'.split('X')
'a'.split('')
lines.splitlines()
lines.splitlines(true)
'abc'.startswith('ab')
'abc'.startswith(('x', 'a'))
'abc'.endswith('bc')
'abc'.endswith(('x', 'y'))
'abc'.startswith(1)
'abc'.startswith(['a'])
s.find('o')
s.find('zz')
s.rfind('o')
u.find('日')
s.index('W')
s.index('zz')
s.count('l')
'aaaa'.count('aa')
'abc'.count('')
s.replace('l', 'L')
s.replace('l', 'L', 2)
'-'.join(ls)
'-'.join(l)
'-'.join(el)
s.capitalize()
'42'.zfill(5)
'-42'.zfill(5)
'ab'.ljust(4) ~ '|'
'ab'.rjust(4)
'a=b=c'.partition('=')
'a=b=c'.rpartition('=')
'abc'.partition('x')
'abc'.rpartition('x')
'abc'.removeprefix('a')
'abc'.removesuffix('c')
'abc'.removeprefix('x')
'123'.isdigit()
'12a'.isdigit()
'abc'.isalpha()
''.isalpha()
'a1'.isalnum()
' \t'.isspace()
'aB'.islower()
'AB'.isupper()
s.zzz
l.count(1)
l.index(2)
l.index(9)
dict(a=1, b=2)
dict([('a', 1)])
namespace(a=1).a
namespace(a=1).b is defined
ls | map('zzz') | list
s.__class__.x
d.__class__.x
s._x.y
'a' 'b' "c"
'tab\there'
'\x41\u00e9\101\q'
"it's"
'a\
b'
[1, 2,]
{'a': 1,}
d.0
l.0
l.1
users.1.name
users[1]['name']
users[0].tags.x
[1, 2, 3][0]
{'a': {'b': 5}}.a.b
(s)
(s | upper).lower()
s | upper | lower | title
n if n > 5 else m
[n, m] | max
'a' ~ ('b' if t else 'c') ~ 'd'
1 if t
s[n]
l[n - 6]
l[t]
d[t] is defined
d[l] is defined
{l: 1}
{(1, 2): 3}[(1, 2)]
1 is 1
s..x
s |
(1
1 +
[1, 2
{'a' 1}
{{ 1
'unclosed
not
a b
1.x
@
s | zzz
s is zzz
s is
zzz(1)
s.zzz(1)
""".strip("\n").replace("'a\\\nb'", "'a\\nb'").split("\n")

SOURCES = [
    # white space
    "  {{ n }}  \n", "a\n", "a\n\n", "\n{{ n }}\n", "{% if t %}\nx\n{% endif %}\ny", "  {% if t %}\n  x\n  {% endif %}\n  y",
    "a {% if t %} b {% endif %} c", "a {%- if t %} b {%- endif %} c", "a {%- if t -%} b {%- endif -%} c", "a\n\n {{- n -}} \n\n b", "  {%+ if t %}x{% endif %}",
    "x\n  {%+ if t +%}\n y{% endif %}", "{# c #}\nx", "  {# c #}\nx", "x {#- c -#} y", "x\n  {#+ c +#}\n y", "{% raw %}{{ x }} {% if %}{% endraw %}!", "{% raw -%}  {{ x }}  {%- endraw %}!",
    "  {% raw %}\n  {{ x }}\n  {% endraw %}\ny", "a\r\nb\rc\r\n", "{{ 'a\r\nb' }}", "{{ n }}\n{{ m }}\n", "{% set x = 1 %}\n{% set y = 2 %}\n{{ x + y }}", "{{- ' a ' -}}", "{{ '%}' }}{{ '}}' }}",
    "{% if '%}' %}a{% endif %}", "{{ {'a': {'b': 1}}['a']['b'] }}", "{{ {} }}", "{{{'a': 1}}}", "{ % { {", "{", "a{", "{{ n }", "\ta\n\t{% if t %}\n\tb\n\t{% endif %}", "{{ n -}}\n\n\n{{ m }}",
    "\u00a0{%- if t %}x{% endif %}", "a\n\u2003{% if t %}x{% endif %}", "{% if t %}{% endif %}\n\n\nx", "{% for x in l %}\n{{ x }}\n{% endfor %}", "{%- for x in l -%}\n{{ x }}\n{%- endfor -%}",
    "  {{ n }}\n  {% set a = 1 %}  \n  b", "{#- a -#}\n{#- b -#}\nx", "{# unclosed", "{% raw %}x", "{% if t",
    # statements
    "{% if no %}a{% elif n == 7 %}b{% else %}c{% endif %}", "{% if no %}a{% elif no %}b{% else %}c{% endif %}", "{% if missing %}a{% endif %}", "{% if missing.x %}a{% endif %}",
    "{% for x in l %}{{ loop.index }}/{{ loop.index0 }}/{{ loop.revindex }}/{{ loop.revindex0 }}/{{ loop.first }}/{{ loop.last }}/{{ loop.length }} {% endfor %}",
    "{% for x in l %}{{ loop.previtem }}<{{ x }}<{{ loop.nextitem }} {% endfor %}", "{% for x in l %}{{ loop.previtem is defined }}{{ loop.nextitem is undefined }} {% endfor %}",
    "{% for x in el %}a{% else %}none{% endfor %}", "{% for x in missing %}a{% else %}none{% endfor %}", "{% for x in nil %}a{% endfor %}", "{% for x in n %}a{% endfor %}", "{% for c in s %}{{ c }}.{% endfor %}",
    "{% for k in d %}{{ k }} {% endfor %}", "{% for k, v in d.items() %}{{ k }}={{ v }} {% endfor %}", "{% for k, v in d | items %}{{ k }}={{ v }} {% endfor %}", "{% for a, b in [(1, 2), (3, 4)] %}{{ a }}{{ b }}{% endfor %}",
    "{% for a, b in [(1, 2, 3)] %}{% endfor %}", "{% for (a, b) in [(1, 2)] %}{{ a }}{{ b }}{% endfor %}", "{% for x in l if x > 1 %}{{ loop.index }}:{{ x }} {% endfor %}", "{% for x in l if x > 9 %}a{% else %}b{% endfor %}",
    "{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}", "{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}", "{% break %}", "{% for x in l %}{% for y in ls %}{% if y == 'A' %}{% break %}{% endif %}{{ x }}{{ y }} {% endfor %}{% endfor %}",
    "{% for x in l %}{{ loop.cycle('a', 'b') }}{% endfor %}", "{% for x in [1, 1, 2] %}{{ loop.changed(x) }}{% endfor %}", "{% for x in 1, 2, 3 %}{{ x }}{% endfor %}", "{% for x in l %}{% endfor %}{{ x }}", "{{ loop }}",
    "{% for x in l %}{% set y = x %}{% endfor %}{{ y }}", "{% set y = 0 %}{% for x in l %}{{ y }}{% set y = x %}{{ y }} {% endfor %}{{ y }}", "{% set ns = namespace(y=0) %}{% for x in l %}{% set ns.y = ns.y + x %}{% endfor %}{{ ns.y }}",
    "{% if t %}{% set y = 1 %}{% endif %}{{ y }}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a = 1, 2 %}{{ a }}", "{% set a %}x{{ n }}y{% endset %}{{ a }}{{ a | length }}", "{% set a | upper %}x{{ n }}y{% endset %}{{ a }}", "{% set d.x = 1 %}", "{% set l.x = 1 %}{{ l }}",
    "{% set x = 1 %}{% set x = x + 1 %}{{ x }}", "{% set none = 1 %}", "{% set n = 5 %}{{ n }}", "{% for n in l %}{{ n }}{% endfor %}{{ n }}",
    "{% macro f(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ f(1) }} {{ f(1, 3) }} {{ f(b=5, a=4) }} {{ f() }}", "{% macro f(a) %}{{ a is defined }}{% endmacro %}{{ f() }}{{ f(1) }}", "{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}", "{% macro f(a) %}{% endmacro %}{{ f(c=2) }}",
    "{% macro f() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 2, x=3) }}", "{% macro f(a, b=a) %}{{ b }}{% endmacro %}{{ f(3) }}", "{% macro f() %}{{ y }}{% endmacro %}{% set y = 5 %}{{ f() }}", "{% macro f(x) %}{% if x > 0 %}{{ x }}{{ f(x - 1) }}{% endif %}{% endmacro %}{{ f(5) }}",
    "{% macro f() %}x{% endmacro %}{{ f() | length }}{{ f() + 'y' }}{{ f.name }}", "{% macro f() %}<{{ caller() }}>{% endmacro %}{% call f() %}in{% endcall %}", "{% macro f() %}{{ caller(1) }}{{ caller(2) }}{% endmacro %}{% call(x) f() %}[{{ x }}]{% endcall %}", "{% macro f() %}x{% endmacro %}{% call f() %}y{% endcall %}",
    "{% macro f(a) %}{% set a = a + 1 %}{{ a }}{% endmacro %}{{ f(1) }}{{ f(1) }}", "{% macro f() %}{% for x in l %}{{ x }}{% endfor %}{% endmacro %}{{ f() }}", "{% filter upper %}abc{{ s }}{% endfilter %}", "{% filter replace('a', 'b') | upper %}aaa{% endfilter %}", "{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a }}", "{% with %}{% set q = 1 %}{{ q }}{% endwith %}",
    "{% generation %}x{{ n }}{% endgeneration %}", "{% generation %}{% set zz = 1 %}{% endgeneration %}{{ zz }}", "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.next() }}", "{% set j = joiner(',') %}{{ j() }}a{{ j() }}b{{ j() }}c",
    "{{ raise_exception('no ' ~ n) }}", "{{ strftime_now('%Y-%m-%d %H:%M:%S %B %b %A %a %d %j %p %I %y %%') }}", "{{ strftime_now('%d %b %Y') }}", "{{ strftime_now('%-d/%-m %e') }}", "{% set ns = namespace() %}{% set ns.a = [1] %}{{ ns.a }}", "{% set m = l | map('string') %}{{ m | list }}{{ m | list }}",
    "{% zzz %}", "{% endif %}", "{% if t %}", "{% for x in l %}{% endif %}", "{% else %}", "{% for in l %}{% endfor %}", "{% if %}{% endif %}", "{% set %}", "{% macro %}{% endmacro %}", "{{ }}", "{% if t %}a{% else %}b{% else %}c{% endif %}", "{% include 'x' %}", "{% set x = %}",
    "{% for u in users %}{{ u.name }}{% if not loop.last %}, {% endif %}{% endfor %}", "{% for u in users | selectattr('age', 'lt', 40) %}{{ loop.index }}{{ u.name }}{% endfor %}", "{% for u in users | sort(attribute='name') %}{{ u.name }} {% endfor %}", "{% for x in l | reverse %}{{ x }}{% endfor %}", "{% for row in l | batch(2) %}{{ row }}{% endfor %}",
    "{% for x in range(3) %}{% for y in range(x) %}{{ loop.index }}{% endfor %}{{ loop.index }};{% endfor %}", "{{ range(200000) }}", "{{ 9 // 2 * 2.0 }}", "{% if l and d and s %}y{% endif %}", "{% if not el and not ed and not e %}y{% endif %}",
    "{% set x = [] %}{% for i in range(3) %}{% set x = x + [i] %}{% endfor %}{{ x }}", "{{ [1, 2] is iterable and [1, 2] is not string }}", "{% set x = {'a': 1} %}{{ dict(x, b=2) }}", "{{ dict(d, **{'q': 1}) }}", "{{ '%s %s' | format(*ls[:2]) }}",
]


def main():
    rows = []
    for source in [f"{{{{ {e} }}}}" for e in EXPRESSIONS] + SOURCES:
        try:
            rows.append({"source": source, "expected": environment().from_string(source).render(**VARIABLES)})
        except Exception as e:
            rows.append({"source": source, "error": f"{type(e).__name__}: {e}"[:200]})
    body = ",\n".join(" " + json.dumps(r) for r in rows)
    print('{"variables": ' + json.dumps(VARIABLES) + ',\n"rows": [\n' + body + "\n]}")


main()
