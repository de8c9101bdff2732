// Renders templates as Cluster API does: text/template with the repeatable functions of sprig.
//
// Reads one JSON object per line, {"template": "...", "data": ..., "plain": false, "strict": false}, and writes one
// per line: {"text": "..."}, {"hex": "..."} for what is not UTF-8, or {"error": "parse"|"execute", "message": "..."}.
package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"text/template"
	"unicode/utf8"

	"github.com/Masterminds/sprig/v3"
)

type question struct {
	Template string `json:"template"`
	Data     any    `json:"data"`
	Plain    bool   `json:"plain"`  // without the functions of sprig
	Strict   bool   `json:"strict"` // a missing key is an error
}

func answer(q question) map[string]string {
	made := template.New("t")
	if !q.Plain {
		made = made.Funcs(sprig.HermeticTxtFuncMap())
	}
	if q.Strict {
		made = made.Option("missingkey=error")
	}
	made, err := made.Parse(q.Template)
	if err != nil {
		return map[string]string{"error": "parse", "message": err.Error()}
	}
	var out bytes.Buffer
	if err := made.Execute(&out, q.Data); err != nil {
		return map[string]string{"error": "execute", "message": err.Error()}
	}
	if !utf8.Valid(out.Bytes()) {
		return map[string]string{"hex": hex.EncodeToString(out.Bytes())}
	}
	return map[string]string{"text": out.String()}
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<26)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for lines.Scan() {
		var q question
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if err := out.Encode(answer(q)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
