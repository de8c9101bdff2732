"""Templates whose text Go has given: tools/gotemplate/record asks it, and gotemplate.json holds its answers."""

from __future__ import annotations

from typing import Any

DATA: dict[str, Any] = {
    "name": "c1",
    "version": "v1.33.1",
    "empty": "",
    "zero": 0,
    "three": 3,
    "large": 4000000,
    "small": 0.00001,
    "ratio": 2.5,
    "yes": True,
    "no": False,
    "nil": None,
    "list": [3, "b", None, True, {"k": "v"}, ["x", 1.5]],
    "names": ["b", "a", "c", "a", "ä", "Z"],
    "map": {"b": 1, "a": "x", "nested": {"deep": {"er": "!"}}, "nil": None, "list": [1, 2]},
    "text": "The quick brown Fox\njumps over  <the> lazy & 'old' \"dog\"",
    "unicode": "Grüße, 世界 ǅ ß 🚢",
    "html": "<a href='x'>&amp;\0</a>",
    "builtin": {
        "cluster": {
            "name": "c1",
            "namespace": "ns",
            "topology": {"version": "v1.33.1", "class": "cc"},
            "network": {"pods": ["10.1.0.0/16"], "services": ["10.2.0.0/16", "fd00::/108"], "serviceDomain": "s.local"},
        },
        "controlPlane": {"version": "v1.32.4", "replicas": 3, "name": "c1-x", "metadata": {"labels": {"a.b/c": "d"}}},
        "machineDeployment": {"class": "worker", "version": "v1.33.0", "replicas": 2, "topologyName": "md-0"},
    },
    "controlPlaneEndpoint": {"IP": "10.0.0.5", "port": 6443},
    "machine": {
        "vcpus": 4,
        "memory": "8Gi",
        "gpus": [],
        "subnets": [{"type": "name", "name": "n1"}, {"type": "uuid", "uuid": "u2"}],
        "categories": [{"key": "k1", "value": "v1"}],
    },
    "imageRepository": "registry.k8s.io",
    "httpProxy": "",
    "noProxy": ["a", "b.c"],
}

# -- the language ------------------------------------------------------------------------------------------------------

# A line each; ⏎ is a new line.
LANGUAGE = r"""
plain
{{ .name }}|{{.name}}|{{ .missing }}|{{ .nil }}|{{ .map.nil }}|{{ .missing.more.still }}
{{ .map.nil.x }}
{{ .name.x }}
{{ .three.x }}
{{ .list.x }}
{{ .zero }} {{ .three }} {{ .large }} {{ .small }} {{ .ratio }} {{ .yes }} {{ .list }} {{ .map }}
{{ . | len }} {{ $ | len }} {{ $.name }} {{ (.map).a }} {{ (.map.nested).deep.er }} {{ .map.nested.deep.er | upper }}
{{ 1 }} {{ -7 }} {{ 1.5 }} {{ 1e3 }} {{ 0x1F }} {{ 0o17 }} {{ 017 }} {{ 0b101 }} {{ 1_000 }} {{ 'a' }} {{ '\n' }} {{ 1. }} {{ .5 }} {{ +3 }}
{{ 0x1p4 }} {{ 1e21 }} {{ 123456789.0 }} {{ 1000000.0 }} {{ 100000.0 }} {{ 0.0001 }} {{ 0.00001 }} {{ 1E6 }} {{ -0.0 }}
{{ "a\tb\x41\u00e9\U0001F6A2\101" }} {{ `raw\n"x"` }} {{ "}}" }} {{ "{{" }} {{ true }} {{ false }}
{{ nil }}
{{ nil | print }}
{{ print nil }}
{{ 99999999999999999999 }}
{{ 9223372036854775807 }} {{ -9223372036854775808 }}
{{ 9223372036854775808 }}
{{ 08 }}
{{ 1__0 }}
{{ 0x_1F }}
{{ 0_1 }}
{{ _1 }}
{{ 'ab' }}
{{ '' }}
{{ "\q" }}
{{ "\'" }}
{{ '\'' }} {{ '"' }}
{{ "a⏎b" }}
{{ `a⏎b` }}
a {{- .name -}} b|a {{- .name }} b|a {{ .name -}} b|a {{-.name}} b
{{- 3 }}|{{-3}}|{{ 3 -}} x|{{3-}}
a {{- /* c */ -}} b {{/* c */}} c{{- /* x⏎y */ -}}⏎⏎ d
{{/* a */}}{{ /* b */ }}
{{/* a */ }}
{{/* a }}
{{ if .yes }}y{{ end }}{{ if .no }}n{{ else }}N{{ end }}{{ if .empty }}{{ else if .three }}3{{ else }}0{{ end }}
{{ if .empty }}a{{ else if .no }}b{{ else if .zero }}c{{ else }}d{{ end }}
{{ if .list }}l{{ end }}{{ if .missing }}m{{ else }}M{{ end }}{{ if .nil }}n{{ else }}N{{ end }}{{ if .map.list }}x{{ end }}{{ if .machine.gpus }}g{{ end }}
{{ if 0.0 }}a{{ end }}{{ if "" }}b{{ end }}{{ if dict }}c{{ end }}{{ if list }}d{{ end }}{{ if "false" }}e{{ end }}
{{ with .map }}{{ .a }}{{ $.name }}{{ end }}{{ with .missing }}x{{ else }}none {{ .name }}{{ end }}{{ with .empty }}{{ else with .three }}{{ . }}{{ end }}
{{ with $x := .map.nested.deep }}{{ $x.er }}{{ .er }}{{ end }}
{{ with $x := 1 }}{{ end }}{{ $x }}
{{ range .names }}[{{ . }}]{{ end }}{{ range .machine.gpus }}x{{ else }}no gpus{{ end }}{{ range .missing }}x{{ else }}missing{{ end }}
{{ range $i, $e := .list }}{{ $i }}={{ $e }};{{ end }}
{{ range $e := .names }}{{ $e }},{{ end }}{{ range $k, $v := .map }}{{ $k }}:{{ $v }} {{ end }}
{{ range .map }}{{ . }} {{ end }}
{{ range 3 }}{{ . }}{{ end }}{{ range $i := 3 }}{{ $i }}{{ end }}{{ range 0 }}x{{ else }}none{{ end }}{{ range -1 }}x{{ else }}neg{{ end }}
{{ range $i, $j := 3 }}{{ end }}
{{ range .three }}{{ end }}
{{ range .name }}{{ end }}
{{ range .yes }}{{ end }}
{{ range .nil }}x{{ else }}nil{{ end }}
{{ range (int .three) }}{{ . }}{{ end }}{{ range (int64 2) }}{{ . }}{{ end }}
{{ range .list }}{{ if kindIs "map" . }}{{ break }}{{ end }}{{ if not . }}{{ continue }}{{ end }}{{ . }},{{ end }}
{{ range .names }}{{ range $.list }}{{ break }}{{ end }}{{ . }}{{ end }}
{{ break }}
{{ if .yes }}{{ continue }}{{ end }}
{{ range .names }}{{ define "x" }}{{ break }}{{ end }}{{ end }}
{{ $x := 1 }}{{ $x }}{{ $x = 2 }}{{ $x }}{{ if true }}{{ $x = 3 }}{{ $y := 4 }}{{ $y }}{{ end }}{{ $x }}
{{ $x := 1 }}{{ if true }}{{ $x := 2 }}{{ $x }}{{ end }}{{ $x }}{{ range .names }}{{ $x = . }}{{ end }}{{ $x }}
{{ $x := .missing }}{{ $x }}{{ $x.y }}{{ $n := .nil }}{{ $n }}{{ $n.y }}
{{ $x := "a" }}{{ $x = 1 }}{{ $x }}
{{ $x = 1 }}
{{ $x }}
{{ $x, $y := .list }}
{{ range $i, $j, $k := .list }}{{ end }}
{{ range $i, := .list }}{{ end }}
{{ $i := 9 }}{{ range $i = .names }}{{ end }}{{ $i }}
{{ $i := 9 }}{{ $j := 8 }}{{ range $i, $j = .names }}{{ end }}{{ $i }}{{ $j }}
{{ $x := 1 | add 2 }}{{ $x }}{{ ($y := 3) }}{{ $y }}
{{ define "T" }}<{{ . }}>{{ end }}{{ template "T" }}{{ template "T" .name }}{{ template "T" (list 1 2) }}
{{ define "T" }}{{ $.x }}{{ end }}{{ template "T" (dict "x" 1) }}{{ template "U" . }}{{ define "U" }}{{ .name }}{{ end }}
{{ block "B" .map }}[{{ .a }}]{{ end }}{{ template "B" (dict "a" 9) }}
{{ block "B" }}x{{ end }}
{{ define "T" }}a{{ end }}{{ define "T" }}b{{ end }}{{ template "T" }}
{{ define "T" }} {{ end }}{{ define "T" }}b{{ end }}{{ template "T" }}
{{ define "T" }}a{{ end }}{{ define "T" }} {{ end }}{{ template "T" }}
{{ template "none" }}
{{ define "R" }}{{ template "R" }}{{ end }}x
{{ define T }}{{ end }}
{{ define "T" }}
{{ $x := 1 }}{{ define "T" }}{{ $x }}{{ end }}
{{ if true }}{{ define "T" }}x{{ end }}{{ end }}
{{ template "T" 1 2 }}
{{ and }}
{{ and 1 2 }} {{ and 0 2 }} {{ or 0 "" "x" }} {{ or 0 "" }}| {{ and true .missing }} {{ not 0 }} {{ not .list }} {{ or .nil .missing }}
{{ and .no (index .list 99) }} {{ or .yes (index .list 99) }} {{ 1 | and 2 }} {{ 0 | or 0 }} {{ 1 | or 0 }}
{{ or .no (index .list 99) }}
{{ eq 1 1 }} {{ eq 1 2 3 1 }} {{ eq "a" "a" }} {{ eq .three 3.0 }} {{ eq .nil nil }} {{ eq .missing nil }} {{ eq .name "c1" "c2" }} {{ ne 1 2 }}
{{ eq .three 3 }}
{{ eq 1 "1" }}
{{ eq 1 }}
{{ eq .list .list }}
{{ eq .map .map }}
{{ eq .map nil }} {{ eq .list nil }} {{ ne .missing "x" }}
{{ eq true true }} {{ eq true 1 }}
{{ lt 1 2 }} {{ le 2 2 }} {{ gt 2 1 }} {{ ge 1 2 }} {{ lt "a" "b" }} {{ lt .ratio 3.0 }} {{ gt "ä" "z" }} {{ lt "a" "a" }}
{{ lt 1 2.0 }}
{{ lt true false }}
{{ lt nil 1 }}
{{ lt .missing 1 }}
{{ gt .list .list }}
{{ lt 1 (int64 2) }} {{ eq (int64 1) 1 }} {{ eq (index "a" 0) 97 }} {{ lt (index "a" 0) 98 }}
{{ index .names 0 }} {{ index .map "a" }} {{ index .map "none" }} {{ index .map "nested" "deep" "er" }} {{ index .list 4 "k" }} {{ index "abc" 1 }} {{ index .names }}
{{ index .names 99 }}
{{ index .names -1 }}
{{ index .names 1.0 }}
{{ index .names .three }}
{{ index .names "a" }}
{{ index .map 1 }}
{{ index .nil 1 }}
{{ index .map "nil" "x" }}
{{ index .missing "x" }}
{{ index 3 1 }}
{{ (index .machine.subnets 0).name }} {{ (index .map "none").x }}
{{ len .names }} {{ len .map }} {{ len "Grüße" }} {{ len list }}
{{ len 3 }}
{{ len .nil }}
{{ slice .names 1 3 }} {{ slice .names }} {{ slice .names 2 }}
{{ slice "abc" 1 }}
{{ slice .names 3 2 }}
{{ slice .names 1 99 }}
{{ html .html }} {{ js .text }} {{ urlquery .text "a/b?c=d&e" "~.-_*" }} {{ js .unicode }} {{ html 1 2 "a" "b" 3 nil }}
{{ print 1 2 "a" "b" 3 .4 nil }} {{ println "a" 1 }} {{ print }} {{ print .list .map }} {{ print "a" 1 "b" }} {{ print 1 "a" 2 }}
{{ .name | printf "%s-%s" "x" | upper | quote }} {{ "x" | print "a" "b" }}
{{ .name | 3 }}
{{ .name | "x" }}
{{ .name | . }}
{{ .name | .map }}
{{ .name | $ }}
{{ 3 4 }}
{{ .name 4 }}
{{ "a" .name }}
{{ .name | }}
{{ | .name }}
{{ .name || .name }}
{{ }}
{{ if }}x{{ end }}
{{ if .yes }}
{{ end }}
{{ else }}
{{ if .yes }}{{ else }}{{ else }}{{ end }}
{{ range .names }}{{ else if .yes }}{{ end }}
{{ with .name }}{{ else if .yes }}{{ end }}
{{ if .yes }}{{ else with .name }}{{ end }}
{{ .name⏎}}|{{⏎.name }}
{{ .name
{{ (.name }}
{{ .name) }}
{{ () }}
{{ (1) }} {{ (print "a" (print "b")) }} {{ ((1)) }} {{ (1 | add 2) }} {{ (.name | upper).x }}
{{ (1).x }}
{{ 1.x }}
{{ "a".x }}
{{ true.x }}
{{ nil.x }}
{{ .name.  }}
{{ .. }}
{{ .name! }}
{{ .na-me }}
{{ $.name.x.y }}
{{ foo }}
{{ foo 1 }}
{{ .name | foo }}
{{ upper }}
{{ upper "a" "b" }}
{{ upper 1 }}
{{ upper .missing }}
{{ upper .nil }}
{{ upper nil }}
{{ .missing | upper }}
{{ repeat "a" "b" }}
{{ repeat 2.0 "b" }} {{ repeat 0x2 "b" }} {{ repeat '\x02' "b" }}
{{ repeat 2.5 "b" }}
{{ repeat (add 1 1) "b" }}
{{ repeat (int .three) "b" }}
{{ repeat .three "b" }}
{{ call upper "a" }}
{{ call .name }}
{{ len }}
{{ not }}
{{ not 1 2 }}
{{ .Name }}{{ ._x }}{{ .x1 }}
{{ "a" | contains "a" | not }}
{{ % }}
{{ a.b }}
{{ : }}
{{ := 1 }}
{{ $x := }}
{{ range $x := .names }}{{ $x }}{{ end }}{{ $x }}
{{ if $x := .name }}{{ $x }}{{ else }}{{ $x }}{{ end }}
{{ ü }}
{{ .größe }}|{{ $ü := 1 }}{{ $ü }}
{{"a"}}{{"b"}}{{.name}}{{if .yes}}y{{end}}
text with { single } braces }} and { {
{{`}}`}}{{"\""}}{{'}'}}
{{ print(1) }}
{{ print (1)(2) }}
{{ print 1,2 }}
{{ print (1) (2) }}{{ (print) }}
{{ .map.a.b }}
{{ list .missing .nil nil }}
{{ .map | len | add 1 }}
{{ if and .builtin.machineDeployment (eq .builtin.machineDeployment.class "worker") }}w{{ end }}
{{ if eq .builtin.machineDeployment.replicas 2.0 }}two{{ end }}
"""

# -- what ClusterClasses write -----------------------------------------------------------------------------------------

CLASSES = [
    "host: '{{ .controlPlaneEndpoint.IP }}'\nport: {{ .controlPlaneEndpoint.port }}\n",
    "content: |\n  sed -i 's/port/{{ .controlPlaneEndpoint.port }}/g' /etc/x.yaml\n",
    "{{if .machine.gpus}}true{{end}}",
    "{{ if .machine.subnets }}true{{ end }}",
    '{{semverCompare "< 1.33.0-0" .builtin.controlPlane.version}}',
    '{{ semverCompare ">= v1.33" .builtin.cluster.topology.version }}',
    '{{ semverCompare ">= 1.24.0" .builtin.controlPlane.version }}-{{ not (empty .httpProxy) }}',
    "{{ not (empty .imageRepository) }}",
    '{{ ne .imageRepository "" }}',
    "{{ if .builtin.controlPlane }}cp{{ else }}md{{ end }}",
    '{{ range .machine.subnets }}- type: {{ .type }}\n{{- if eq .type "name" }}\n  name: {{ .name }}\n{{- else }}\n  uuid: {{ .uuid }}\n{{- end }}\n{{ end }}',
    "{{ range .machine.categories }}\n- key: {{ .key }}\n  value: {{ .value | quote }}\n{{- end }}\n",
    '[Service]\nEnvironment="NO_PROXY={{ .noProxy | join "," }},{{ .builtin.cluster.network.serviceDomain }},{{ range .builtin.cluster.network.services }}{{ . }},{{ end }}"\n',
    "{{ .noProxy | toJson }}",
    'kindest/node:{{ .builtin.machineDeployment.version | replace "+" "_" }}',
    "{{ $v := semver .builtin.cluster.topology.version }}{{ $v.Major }}.{{ $v.Minor }}.{{ $v.Patch }}",
    '{{ printf "%s-%s" .builtin.cluster.name .builtin.cluster.namespace | trunc 5 | trimSuffix "-" }}',
    '{{ index .builtin.controlPlane.metadata.labels "a.b/c" }}',
    '{{ with .builtin.machineDeployment }}{{ .topologyName | default "none" }}{{ end }}{{ .builtin.machinePool.class }}',
    '{{ ternary "a" "b" (hasKey .builtin "machinePool") }}',
    "imageRepository: {{ .imageRepository }}/coredns\nreplicas: {{ .builtin.controlPlane.replicas }}\nlarge: {{ .large }} {{ .large | int }}\n",
    '{{ dig "cluster" "network" "pods" (list) .builtin | first }}',
    "{{ .builtin.cluster.network.pods | toJson | fromJson | last }}",
    "- name: {{ .builtin.cluster.name }}-{{ .builtin.controlPlane.name | sha256sum | trunc 8 }}",
    '{{ regexReplaceAll "^v(\\\\d+)\\\\.(\\\\d+).*" .version "${1}-${2}" }}',
    "{{- if gt (len .names) 3 -}}\nmany\n{{- else -}}\nfew\n{{- end }}",
    "{{ .text | indent 4 }}\n{{ .text | nindent 2 }}",
]

# -- functions: one expression each ------------------------------------------------------------------------------------

EXPRESSIONS = r"""
printf "%v|%d|%s|%q|%t|%x|%X|%o|%b|%c|%U|%T" "a" 7 "s" "q" true 255 255 8 5 97 97 1.5
printf "%5d|%-5d|%05d|%+d|% d|%x|%#x|%#o|%O|%.3d|%8.3d|%-08d" 42 42 42 42 42 -42 42 42 42 42 42 42
printf "%5s|%-5s|%.2s|%5.1s|%05s|%q|%+q|%#q|%x|% x|%#x|%# x|%X" "abc" "abc" "abc" "abc" "abc" "a\"b" "ü" "a`b" "hi" "hi" "hi" "hi" "hi"
printf "%f|%.2f|%8.3f|%-8.1f|%08.3f|%+.1f|%e|%.3e|%E|%g|%G|%.3g|%v" 1.5 1.5 1.5 1.5 1.5 1.5 1.5 1.5 1.5 1.5 1.5 1.5 1.5
printf "%g|%g|%g|%v|%v|%G|%.10g|%#g|%#.3g" 1e6 123456.0 1e-5 1e20 12345678.9 1e-10 100000.0 1.0 1.0
printf "%x %X %v %+v %#v %t %5t|%-7t|" 1.5 -2.25 0.1 1.5 1.0 true true false
printf "%v %+v %#v %d %s %5v %T" .list .list .list .list .list .list .list
printf "%v %+v %#v %s %q %T" .map .map .map .map .map .map
printf "%d %s %v %q %t" .three .three .three .three .three
printf "%s %d %v %t %x" nil nil nil nil nil
printf "%v %s" .missing .nil
printf "%5v|%-5v|%05v|%5v" nil nil nil true
printf "%d %d" 1
printf "%d" 1 2 "a" nil 1.5 .list
printf "%[2]d %[1]d|%[2]*[1]d|%[3]d|%[x]d|%[1]d %d" 1 5
printf "%*d|%-*d|%.*f|%*d" 5 1 5 2 2 1.5 "a" 1
printf "%*d" -5 1
printf "%!|%z|%y" 1 2
printf "%"
printf "%%|%5%|%-5%|%c|%c" 'x' 0x1F6A2
printf "%U|%#U|%08U" 0x1F6A2 0x1F6A2 0x41
printf "%q|%q|%+q|%#q" 'x' 0x1F6A2 0x1F6A2 'x'
printf "%s %v %d" (list "a" 1) (dict "a" 1) (list 1 2)
printf "%s|%q|%v" .unicode .unicode .unicode
printf "%6.2f|%6.2f%%" .ratio 99.5
printf "%t" "x"
printf "%d" "x"
printf "%s" true
printf "%x|%X|%x" "Grüße" (list "a" "b") (list 10 11)
printf "%+d %+d % d %+5d|%+05d" 1 -1 -1 3 3
printf "%o %#b %#X %#x" 64 5 255 0
printf "%.0d|%.0d|%5.0d|" 0 1 0
printf "%1000000000d" 1
printf "%T %T %T %T %T %T %T" nil (add 1 2) (index "a" 0) (list 1) (splitList "," "a") (split "," "a") (until 2)
printf .name
printf .three 1
printf "%v %v" (semver "v1.2.3-a+b") (list (semver "1.2"))
printf "%s|%10s|%-10s|%q" (semver "1.2.3") (semver "1.2.3") (semver "1.2.3") (semver "1.2.3")
abbrev 5 "hello world"
abbrev 3 "hello world"
abbrev 20 "hello"
abbrevboth 5 10 "1234 5678 9123"
abbrevboth 1 10 "1234 5678 9123"
abbrevboth 20 10 "1234 5678 9123"
abbrevboth 5 6 "1234 5678 9123"
trunc 3 "abcdef"
trunc -3 "abcdef"
trunc 99 "abc"
trunc -99 "abc"
trunc 0 "abc"
trim "  \t\n a b  "
upper .unicode
lower .unicode
title "hello wOrld foo-bar o'neil x_y 1a"
untitle "Hello World FOO"
swapcase "Hello wOrld 1a Ab"
initials "First Try second"
snakecase "FirstName"
snakecase "HTTPServer"
snakecase "NoHTTPS"
snakecase "GO_PATH"
snakecase "GO PATH"
snakecase "GO-PATH"
snakecase "http2xx"
snakecase "HTTP20xOK"
snakecase "Duration2m3s"
snakecase "Bld4Floor3rd"
snakecase "a.b, C"
snakecase "FIRST_name"
snakecase "a1b2C3"
snakecase ""
kebabcase "FirstName lastName"
kebabcase "HTTPStatusCode200OK"
camelcase "some_words"
camelcase "http_server"
camelcase "no_https"
camelcase "_complex__case_"
camelcase "some words"
camelcase "GOLANG_IS_great"
camelcase "a"
camelcase "A_B-c d"
camelcase "__"
camelcase "alreadyCamel"
substr 0 3 "hello"
substr -1 3 "hello"
substr 2 -1 "hello"
substr 2 99 "hello"
substr 3 2 "hello"
substr 9 10 "hello"
repeat 3 "ab"
repeat 0 "ab"
repeat -1 "ab"
trimAll "$" "$5.00$"
trimall "xy" "xyaxy"
trimAll "" " a "
trimSuffix "-" "hello--"
trimPrefix "v" "v1.2"
nospace " h e l l o "
nospace "a ü b"
wrap 5 "hello world foo bar"
wrap 80 .text
wrap 3 "abcdefgh ij"
wrap 0 "a b"
wrapWith 5 "\t" "Hello World longwordhere"
wrapWith 4 "" "ab cd ef"
contains "ell" "hello"
contains "" "hello"
hasPrefix "he" "hello"
hasSuffix "lo" "hello"
quote "a" 1 nil "b\"c" .three .list
quote .unicode
quote
squote "a" 1 nil "it's" .map
cat "a" 1 nil "b" .three
cat
cat nil
cat "%d" 1
indent 2 "a\nb\n"
nindent 2 "a\nb"
indent -1 "a"
replace " " "-" "I Am Henry VIII"
replace "" "-" "abc"
replace "a" "" "banana"
plural "one" "many" 1
plural "one" "many" 2
plural "one" "many" .three
toString 1
toString .list
toString .three
toString nil
toString .large
toStrings .list
toStrings nil
toStrings "x"
toStrings .map
join "," .names
join "-" .list
join "," "x"
join "," nil
join "," (until 3)
join "," .map
split "," "a,b,c"
(split "," "a,b,c")._1
(split "," "a,b,c")._9
splitn "," 2 "a,b,c"
splitn "," 0 "a,b,c"
splitn "," -1 "a,b,c"
splitList "," "a,b,,c"
splitList "" "aüb"
splitList "," ""
split "" "ab"
sortAlpha .names
sortAlpha .list
sortAlpha "x"
fail "no luck"
hello
default "d" .name
default "d" .empty
default "d" .missing
default "d" .zero
default "d" .no
default "d" nil
default "d"
default "d" .machine.gpus
default 5 .three
.empty | default .nil | default "z"
empty .empty
empty .zero
empty .list
empty .missing
empty nil
empty (dict)
coalesce .empty .zero .nil "x" "y"
coalesce
coalesce 0 ""
all 1 "a" .yes
all 1 "" .yes
all
any 0 "" .no
any 0 "x"
any
ternary "a" "b" true
ternary "a" "b" .no
true | ternary 1 2
ternary "a" "b" .three
ternary "a" "b" .missing
atoi "12"
atoi "x"
atoi "-5"
atoi "99999999999999999999"
atoi "0x10"
atoi " 1"
atoi "1_0"
int "12"
int "12.9"
int "0x10"
int "010"
int "0b11"
int " 1"
int "abc"
int ""
int .ratio
int -2.9
int true
int nil
int .list
int 1e30
int "1e3"
int "1_000"
int "-.5"
int "."
int "99999999999999999999"
int64 "7"
int64 .three
float64 "1.5"
float64 "x"
float64 "1e400"
float64 "inf"
float64 "-Inf"
float64 "nan"
float64 3
float64 true
float64 "0x1p-2"
float64 "1_000.5"
float64 ".5"
toDecimal "0777"
toDecimal 777
toDecimal "8"
toDecimal "-17"
toDecimal "0o17"
add 1 2 3
add
add .three .ratio
add "1" "2" nil true
add 9223372036854775807 1
add1 5
add1 "x"
sub 5 3
sub 1 .three
div 7 2
div -7 2
div 7 -2
div 1 0
div -9223372036854775808 -1
mod 7 3
mod -7 3
mod 7 -3
mod 1 0
mul 3 4 5
mul 3
mul 9223372036854775807 2
add1f 1.5
add1f "1.1"
addf 0.1 0.2
addf
addf 1 "x" 2.5
subf 5 2.2 0.3
subf 5
mulf 1.1 1.1
mulf 2
divf 10 4
divf 1 3
divf 2 3
divf 1 0
divf 10 2 5
max 1 5 3
max .ratio "7"
biggest 2 1
min 4 2 9
maxf 1 2.5
minf 1 0.5 3
maxf "x" -1
floor 123.9
ceil 123.001
floor -1.5
ceil -0.5
floor "x"
round 123.5555 2
round 123.5555 3 .3
round -1.5 0
round 1.005 2
round 5 0
round 1.25 1 0.6
until 5
until -3
until 0
until .three
until "a"
untilStep 0 10 3
untilStep 10 0 -4
untilStep 0 10 0
untilStep 10 0 1
seq 5
seq -3
seq 2 5
seq 5 2
seq 0 2 10
seq 10 -3 0
seq 0 -1 5
seq
seq 1 2 3 4
seq 1 1
list 1 "a" nil
tuple 1 2
append .names "x"
append "a" "b"
append nil "b"
push (until 2) "x"
prepend .names 0
prepend .map 0
first .names
first list
first "abc"
first nil
mustFirst "abc"
last .names
last list
rest .names
rest list
rest (list 1)
initial .names
initial list
reverse .list
reverse "ab"
compact .list
compact (list 0 "" nil "a" false)
uniq .names
uniq (list 1 1.0 "1" 1 nil nil (list 1) (list 1))
without .names "a" "c"
without .list nil
without "x" 1
has "a" .names
has 3.0 .list
has 3 .list
has nil .list
has "x" nil
has "x" "xyz"
has (dict "k" "v") .list
concat .names (list 1) (until 2)
concat
concat "a"
chunk 2 .names
chunk 3 (until 7)
chunk 2 (until 4)
chunk 0 .names
chunk 2 "abc"
slice .names 1 2
slice (until 5) 1
slice .names .three
slice .names "1"
slice list 1
slice .map 1
mustSlice .names 9
dict "a" 1 "b" (list 1)
dict "a"
dict 1 2 nil 3
dict
get .map "a"
get .map "none"
get .list "a"
(get .map "nested").deep
set (dict "a" 1) "b" 2
set .map "new" 1
unset (dict "a" 1 "b" 2) "a"
hasKey .map "a"
hasKey .map "none"
hasKey .map "nil"
hasKey (split "," "a") "_0"
hasKey .nil "a"
hasKey .missing "a"
pluck "a" .map (dict "a" 2) (dict "b" 3)
keys .map | sortAlpha
keys (dict "a" 1) (dict "a" 2)
keys
values (dict "a" 1)
pick .map "a" "none"
omit .map "a" "nested"
merge (dict "a" 1 "b" 0 "c" "") (dict "a" 9 "b" 9 "c" 9 "d" 9)
merge (dict "a" (dict "x" 1)) (dict "a" (dict "x" 2 "y" 3))
merge (dict "a" (list 1)) (dict "a" (list 2) "b" (list 3))
merge (dict "a" list) (dict "a" (list 2))
merge (dict "a" 1) (dict "a" (dict "x" 1))
merge (dict "a" (dict)) (dict "a" (dict "x" 1))
merge (dict "a" nil) (dict "a" nil "b" nil "c" 1)
merge (dict) (dict "a" 1) (dict "a" 2 "b" 3)
mergeOverwrite (dict "a" 1 "b" 2) (dict "a" 9 "b" 0)
mergeOverwrite (dict "a" (dict "x" 1 "y" 2)) (dict "a" (dict "x" 9))
mergeOverwrite (dict "a" (list 1)) (dict "a" list "b" nil)
mergeOverwrite (dict "a" (dict "x" 1)) (dict "a" 5)
mergeOverwrite (dict "a" 5) (dict "a" (dict "x" 1))
mustMerge (dict "a" 1) (dict "b" 2)
merge .map .nil
deepCopy .map
deepCopy nil
dig "a" "d" .map
dig "nested" "deep" "er" "d" .map
dig "nested" "none" "er" "d" .map
dig "a" "b" "d" .map
dig "a" .map
dig 1 "d" .map
dig "nil" "x" "d" .map
toJson .map
toJson .text
toJson .unicode
toJson .list
toJson nil
toJson .large
toJson 1e21
toJson 1e-7
toJson 100000000.0
toJson (float64 "nan")
toJson (list)
toJson (dict)
toJson "\x00\x1f\x7f\u2028\b\f"
toJson (semver "1.2.3")
toRawJson .text
toRawJson .map
toRawJson (float64 "inf")
mustToJson (float64 "inf")
toPrettyJson .map
toPrettyJson .list
toPrettyJson (dict "a" list "b" dict "c" (list 1 (list 2)))
fromJson "{\"a\": [1, 2.5, null, true, \"x\"]}"
fromJson "1e2"
fromJson "bad"
fromJson "[1,]"
fromJson "NaN"
fromJson "\"\ud83d\udea2 \ud800\""
fromJson "123456789012345678901234567890"
mustFromJson "bad"
(fromJson "{\"a\": {\"b\": 3}}").a.b
b64enc .text
b64dec "aGVsbG8="
b64dec "aGVsbG8"
b64dec "a!b="
b64dec "aGVs\nbG8="
b32enc "hello"
b32dec "NBSWY3DP"
b32dec "nope"
sha1sum "a"
sha256sum .unicode
sha512sum ""
adler32sum "hello"
typeOf .three
typeOf .list
typeOf .map
typeOf nil
typeOf (semver "1.2.3")
typeOf (add 1 1)
typeIs "string" .name
typeIs "int" .three
typeIsLike "semver.Version" (semver "1.2.3")
kindOf .list
kindOf nil
kindOf .missing
kindOf (semver "1.2.3")
kindOf .three
kindIs "map" .map
deepEqual .list .list
deepEqual (list 1) (list 1.0)
deepEqual 1 (int64 1)
deepEqual nil nil
regexMatch "^[a-c]+$" "abc"
regexMatch "[" "abc"
mustRegexMatch "[" "abc"
regexFindAll "[2,4,6,8]" "123456789" -1
regexFindAll "a*" "baaac" -1
regexFindAll "a" "aaa" 2
regexFindAll "a" "aaa" 0
regexFindAll "x" "aaa" -1
regexFind "[a-z][0-9]" "ab1cd2"
regexFind "x" "abc"
regexFind "(" "abc"
regexReplaceAll "a(x*)b" "-ab-axxb-" "${1}W"
regexReplaceAll "a(x*)b" "-ab-axxb-" "$1W"
regexReplaceAll "(?P<n>x+)" "axxb" "<${n}|$n|$0|$9|$$|${bad-}>"
regexReplaceAll "a*" "baac" "X"
regexReplaceAll "" "äb" "-"
regexReplaceAll "[äü]" .unicode "u"
regexReplaceAllLiteral "a(x*)b" "-ab-axxb-" "${1}"
regexSplit "z+" "pizza" -1
regexSplit "z+" "pizza" 1
regexSplit "z+" "pizza" 0
regexSplit "a" "banana" 2
regexSplit "" "abc" -1
regexSplit "a" "" -1
regexSplit "x*" "axbxc" -1
regexQuoteMeta "1.2*3[a](b)"
semver "1.2.3-alpha.1+123"
semver "v1.2"
semver "1"
semver "x"
semver ""
semver "1.2.3.4"
semver "01.2.3"
semver "1.2.3-01"
(semver "v1.2.3-alpha+b").Prerelease
(semver "v1.2.3-alpha+b").Metadata
(semver "v1.2.3-alpha+b").Original
(semver "v1.2.3-alpha+b").String
(semver "1.2.3").Major
(semver "1.2.3").IncMinor
(semver "v1.2.3-rc.1").IncPatch
(semver "1.2.3").Nope
(semver "1.2.3").Compare (semver "1.2.4")
(semver "1.2.3").LessThan (semver "1.2.3-rc.1")
semver "1.2.4" | (semver "1.2.3").Compare
eq (semver "1.2.3").Minor 2
gt (semver "1.30.0").Minor 29
ge ((semver "1.30.0").Minor | int) 30
base "a/b/c.txt"
base "a/b/"
base "/"
base ""
dir "a/b/c"
dir "/a"
dir "a"
dir "//a//b"
clean "a/./b/../c//d"
clean "/../a"
clean "../../a/.."
clean ""
ext "a/b.tar.gz"
ext "a.b/c"
isAbs "/a"
isAbs "a"
osBase "/x/y"
urlParse "https://admin:secret@server.com:8080/api?list=false#anchor"
urlParse "mailto:a@b.c"
urlParse "/just/a%20path?q"
urlParse "http://[::1]:80/x"
urlParse "http://a b/"
urlParse "http://h:port/"
urlParse "%zz"
urlJoin (dict "scheme" "http" "host" "h:80" "path" "/a b" "query" "q=1" "fragment" "f g" "userinfo" "u:p")
urlJoin (dict "host" "h" "path" "p")
urlJoin (dict "scheme" "mailto" "opaque" "a@b")
urlJoin (dict "path" "/x")
urlJoin (dict "host" 1)
duration 95
duration "95"
duration "3661"
duration (int64 90061)
duration "x"
durationRound "2h10m5s"
durationRound "49h"
durationRound "2400h10m5s"
durationRound "x"
durationRound (int64 5000000000)
trunc 1 "ü"
index "ü" 0
substr 0 2 "Grü" | quote
trunc 3 "Grü" | len
printf "%s%s" (trunc 1 "ü") (trunc -1 "ü")
keys .map | len
printf "%x|%.2x|%.0X|%b|%x|%#x" 1.5 1.999 2.5 1.5 5e-324 2.5
printf "%#g|%#g|%#g|%#.0e|%#.0f|%#e" 0.1 1234567.5 100000.0 1.5 1.5 1.5
printf "%#.2v|%#O|%#o|%.*f|%.*d" "abcd" 8 8 -1 1.5 "x" 1
printf "%#o" .ratio
snakecase "_AXz,-xXÄ"
snakecase "aǅX שלום 世界Ab"
kebabcase "0ZI2b b._H_ÄÄ,"
round -0.0 2
maxf -0.0 0
minf 0.0 -0.0
concat | toJson
toJson (rest list)
regexFindAll "x" "abc" -1 | toJson
eq (initial list) nil
eq (regexFindAll "x" "abc" -1) nil
set .missing "a" 1
set nil "a" 1
merge nil (dict "a" 1)
unset nil "a"
sortAlpha nil
mulf -1 0
printf "%-8n|%+z|%06z|%5.2z" 42 1 "a" 1.5
printf "%010000d" 1 | len
b64dec "aVsbG8="
b64dec "aVsbG=8="
b64dec "a==="
b64dec "aa==a"
b64dec "aaa=\naa"
toJson (trunc 1 "ü")
quote (trunc 1 "ü")
regexSplit "+" "a" 0
urlParse "http://a]@b/"
urlParse "http://a[::1]/"
list 1 2 | toJson
"a b" | splitList " " | toJson
(list (dict "a" 1)) | toJson
.names | sortAlpha | uniq | join ","
.machine.memory | trimSuffix "Gi" | int | mul 1024
toJson .builtin.cluster.network
"""

VERSIONS = ["1.2.3", "v1.33.1", "1.33.0-rc.1", "2.0.0", "0.2.3", "0.0.3", "1.2.3-beta", "1.2", "1.2.3+b.1", "11.1.0"]
CONSTRAINTS = r"""
1.2.3
=1.2.3
!=1.2.3
>1.2.3
<1.33.0-0
>=1.2
=>1.2
<=1.2
=<1
~1.2.3
~1.2
~1
~>1.2
^1.2.3
^0.2.3
^0.0.3
^0.0
^0
*
x
1.x
1.2.x
1.2.*
!=1.2
!=1
!=*
>1
>1.2
>*
<=1.x
<2.x
~0.0.0
>=1.2, <2
>= 1.2 < 2
>=1.2,<1.3||>=2
1.2 - 1.33
1.2.3 - 2.0.0 || 11.x
>= 1.33.0-alpha.1
^1.2.3-alpha
~1.33.0-0
!=1.2.x-beta
v1.2.3
>= v1.33
1.2.3+b.1
||
>
1.2.3.4
a
1.2,
,1.2
>>1
1 2
"""


def cases() -> list[dict[str, Any]]:
    """Templates with their data; plain: without sprig, strict: a missing key is an error."""
    language = [line.replace("⏎", "\n") for line in LANGUAGE.strip("\n").split("\n")]
    found: list[dict[str, Any]] = [{"template": text, "data": DATA} for text in [*language, *CLASSES]]
    found += [{"template": f"{{{{ {text} }}}}", "data": DATA} for text in EXPRESSIONS.strip("\n").split("\n")]
    for constraint in CONSTRAINTS.strip("\n").split("\n"):
        asked = "".join(f'{{{{ semverCompare "{constraint}" "{version}" }}}} ' for version in VERSIONS)
        found.append({"template": asked, "data": None})
    found += [{"template": text, "data": DATA, "strict": True} for text in STRICT]
    found += [{"template": text, "data": DATA, "plain": True} for text in PLAIN]
    found += [{"template": "{{ . }}|{{ .x }}", "data": data} for data in (None, 1, "s", [1], {"x": {"y": None}}, True)]
    return found


STRICT = [
    "{{ .missing }}",
    "{{ .map.none }}",
    "{{ .missing.x }}",
    '{{ index .map "x" }}',
    "{{ .nil }}",
    "{{ if .missing }}{{ end }}",
]
PLAIN = [
    '{{ slice "abcdef" 1 3 }}',
    "{{ slice .names 1 }}",
    '{{ upper "a" }}',
    "{{ slice .names 1 2 3 }}",
    '{{ slice "a" 2 }}',
    '{{ slice "Grüße" 0 4 }}',
]
