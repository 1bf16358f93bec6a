// Command generate renders every case with Go's text/template and real sprig and writes what came out.
//
// Run it by hand after changing the cases: go run . > ../cases.json
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"
)

// Case is one template with the data it is rendered with and what Go made of it.
type Case struct {
	Name     string  `json:"name"`
	Data     string  `json:"data"`
	Template string  `json:"template"`
	Output   *string `json:"output,omitempty"`
	Error    string  `json:"error,omitempty"`
}

// The time that now shows; the test uses the same.
var now = time.Date(2026, time.March, 4, 15, 6, 7, 89000000, time.UTC)

func functions() template.FuncMap {
	functions := sprig.TxtFuncMap()
	// Go's own slice also takes strings; that is the one we follow.
	delete(functions, "slice")
	functions["now"] = func() time.Time { return now }
	// As Helm defines them.
	functions["toYaml"] = func(value any) string {
		text, err := yaml.Marshal(value)
		if err != nil {
			return ""
		}
		return strings.TrimSuffix(string(text), "\n")
	}
	functions["fromYaml"] = func(text string) map[string]any {
		value := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			value["Error"] = err.Error()
		}
		return value
	}
	functions["fromYamlArray"] = func(text string) []any {
		value := []any{}
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			value = []any{err.Error()}
		}
		return value
	}
	functions["required"] = func(message string, value any) (any, error) {
		if text, ok := value.(string); value == nil || ok && text == "" {
			return value, errors.New(message)
		}
		return value, nil
	}
	return functions
}

// integers turns JSON numbers into what Kubernetes' unstructured objects hold: int64 where possible.
func integers(value any) any {
	switch value := value.(type) {
	case json.Number:
		if integer, err := value.Int64(); err == nil {
			return integer
		}
		float, _ := value.Float64()
		return float
	case []any:
		for index := range value {
			value[index] = integers(value[index])
		}
	case map[string]any:
		for key := range value {
			value[key] = integers(value[key])
		}
	}
	return value
}

func decode(text string) any {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		panic(err)
	}
	return integers(value)
}

func render(one *Case, data any) {
	parsed, err := template.New("case").Funcs(functions()).Option("missingkey=error").Parse(one.Template)
	if err == nil {
		var out bytes.Buffer
		if err = parsed.Execute(&out, data); err == nil {
			text := out.String()
			one.Output = &text
			return
		}
	}
	one.Error = err.Error()
}

func main() {
	all := cases()
	seen := map[string]bool{}
	for index := range all {
		if seen[all[index].Name] {
			panic("two cases are called " + all[index].Name)
		}
		seen[all[index].Name] = true
		render(&all[index], decode(datasets[all[index].Data]))
	}
	data := map[string]json.RawMessage{}
	for name, text := range datasets {
		data[name] = json.RawMessage(text)
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(map[string]any{"data": data, "cases": all}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
