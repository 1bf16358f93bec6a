package main

import "fmt"

// cases lists all of them: the crossed ones first, then the ones written by hand.
func cases() []Case {
	var all []Case
	all = append(all, comparisons()...)
	all = append(all, verbs()...)
	all = append(all, trims()...)
	for _, group := range []struct {
		name, data string
		templates  []string
	}{
		{"action", "kinds", actions},
		{"control", "kinds", controls},
		{"parse", "kinds", refused},
		{"function", "kinds", builtins},
		{"text", "kinds", texts},
		{"choice", "kinds", choices},
		{"list", "kinds", lists},
		{"dict", "kinds", dicts},
		{"number", "kinds", numbers},
		{"encoding", "kinds", encodings},
		{"yaml", "kinds", yamls},
		{"pattern", "kinds", patterns},
		{"date", "kinds", dates},
		{"plan", "plan", plans},
	} {
		for index, text := range group.templates {
			all = append(all, Case{Name: fmt.Sprintf("%s %03d", group.name, index+1), Data: group.data, Template: text})
		}
	}
	return all
}

// comparisons crosses every operator with values of every type.
func comparisons() []Case {
	operands := []string{".i", ".f", ".s", ".t", ".null", ".list", ".map", "42", "3.14", `"héllo"`, "nil"}
	var all []Case
	for _, operator := range []string{"eq", "ne", "lt", "le", "gt", "ge"} {
		for _, left := range operands {
			for _, right := range operands {
				all = append(all, Case{
					Name: fmt.Sprintf("compare %s %s %s", operator, left, right), Data: "kinds",
					Template: fmt.Sprintf("{{%s %s %s}}", operator, left, right),
				})
			}
		}
	}
	return all
}

// verbs crosses every verb of printf with values of every type.
func verbs() []Case {
	both := []string{"%v", "%+v", "%s", "%q", "%d", "%5d", "%-5d|", "%05d", "%+d", "%t", "%T", "%8v|", "%-8v|", "%c", "%U", "%o", "%08.3f", "%.2f", "%e", "%g", "%.1s", "%.3v", "%z"}
	whole := []string{"%x", "%X", "%#x", "%#v", "%b", "% x", "%#q", "%#o", "%O", "%+q"}
	var all []Case
	add := func(verb, value string) {
		all = append(all, Case{
			Name: fmt.Sprintf("printf %s of %s", verb, value), Data: "kinds",
			Template: fmt.Sprintf("{{printf %q %s}}", verb, value),
		})
	}
	for _, value := range []string{".i", ".neg", ".f", ".million", ".s", ".t", ".null", ".list", ".map", ".words", "65"} {
		for _, verb := range both {
			add(verb, value)
		}
	}
	for _, value := range []string{".i", ".neg", ".s", ".t", ".null", ".words", ".numbers", "65", ".quoted"} {
		for _, verb := range whole {
			add(verb, value)
		}
	}
	return all
}

// trims crosses text around an action with every combination of trim markers.
func trims() []Case {
	var all []Case
	for index, around := range []string{" a \n%s\t b ", "a%sb", "\n\n%s\n\n", "x  %s  %[1]s y"} {
		for _, action := range []string{"{{1}}", "{{- 1}}", "{{1 -}}", "{{- 1 -}}", "{{-1}}", "{{/* c */}}", "{{- /* c */}}", "{{/* c */ -}}", "{{- /* c */ -}}", "{{- if true -}} in {{- end -}}"} {
			all = append(all, Case{
				Name: fmt.Sprintf("trim %d %s", index, action), Data: "kinds", Template: fmt.Sprintf(around, action),
			})
		}
	}
	return all
}
